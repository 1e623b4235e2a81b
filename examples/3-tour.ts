// Names with dashes, several calls at once, progress, and different kinds of content.

const [echo, sum] = await Promise.all([
  mcp.everything.echo({ message: `hello ${args.who ?? "world"}` }),
  mcp.everything.get_sum({ a: 19, b: 23 }),
]);
progress(1, 3, "two answers are here");

const weather = await mcp.everything["get-structured-content"]({ location: "New York" });
progress(2, 3, "the weather, too");

const image = await mcp.everything.getTinyImage({});
const kinds = Array.isArray(image) ? image.map((block) => (typeof block === "string" ? "text" : block.type)) : [typeof image];
return { echo, sum, weather, kinds };
