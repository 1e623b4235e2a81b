// Put the contacts of a file into the knowledge graph, then write a summary.
// A file that may be missing is read in a try block: the program goes on without it.

const read = async (path: string): Promise<string | null> => {
  try {
    return (await mcp.filesystem.read_text_file({ path })).content;
  } catch (error) {
    console.warn(`${path} was not read (${(error as Error).name})`);
    return null;
  }
};

const contacts = JSON.parse((await read("contacts.json")) ?? "[]") as { name: string; role: string; city: string }[];
const previous = await read("out/summary.md");

await mcp.memory.create_entities({
  entities: contacts.map((c) => ({ name: c.name, entityType: "person", observations: [`${c.role} from ${c.city}`] })),
});

const speakers: string[] = [];
for (const contact of contacts) {
  const { entities } = await mcp.memory.search_nodes({ query: contact.name });
  if (entities[0]?.observations.some((o: string) => o.startsWith("speaker"))) speakers.push(entities[0].name);
}

await mcp.filesystem.create_directory({ path: "out" });
await mcp.filesystem.write_file({
  path: "out/summary.md",
  content: `# Speakers\n\n${speakers.map((s) => `- ${s}`).join("\n")}\n`,
});
return { speakers, hadSummary: previous !== null };
