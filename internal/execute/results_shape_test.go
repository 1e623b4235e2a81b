package execute

import (
	"fmt"
	"strings"
	"testing"
)

func TestShapeTellsTypesCountsAndSizes(t *testing.T) {
	for _, c := range []struct{ value, want string }{
		{
			`{"items":[{"id":1,"tags":["a"]},{"id":2.5,"tags":[],"name":"x"}],"total":2}`,
			"{ items: { id: number; tags: string[]; name?: string }[]; total: number }\n" +
				"$: object with 2 keys; 75 bytes\n" +
				"$.items: list of 2; 55 bytes\n" +
				"$.items[*]: 2 times object with 2 to 3 keys; 52 bytes\n" +
				"$.items[*].tags: 2 times list of 0 to 1; 7 bytes",
		},
		{`"` + strings.Repeat("é", 200) + `"`, "string\n$: string of 200 characters; 402 bytes"},
		{`[]`, "unknown[]\n$: list of 0; 2 bytes"},
		{`[1,"a",null]`, "(number | string | null)[]\n$: list of 3; 12 bytes"},
		{
			`{"":{"odd key":[1]}}`, "{ \"\": { \"odd key\": number[] } }\n$: object with 1 keys; 20 bytes\n" +
				"$['']: object with 1 keys; 15 bytes\n$['']['odd key']: list of 1; 3 bytes",
		},
		{`5`, "number"},
	} {
		if got := shapeOf(c.value).text; got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", Preview(c.value, 60), got, c.want)
		}
	}
}

func TestShapeOfDataAsKeys(t *testing.T) {
	var b strings.Builder
	for i := range 500 {
		fmt.Fprintf(&b, `,"user %d":{"logins":[%d]}`, i, i)
	}
	got := shapeOf("{" + b.String()[1:] + "}").text
	for _, want := range []string{`$: object with 500 keys, e.g. "user 0", "user 1", "user 2"`, "$.*: 476 times object with 1 keys"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
		if strings.Contains(got, "user 3") {
			t.Errorf("all keys are named:\n%s", got)
		}
	}
}

// hostile values: each shape must stay small.
func TestShapeIsSmallWhateverTheValue(t *testing.T) {
	key := strings.Repeat(`\u0001\"😀`, 50)
	deep := strings.Repeat(`{"`+key+`":[`, 200) + strings.Repeat("]}", 200)
	var wide, odd strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&wide, `,"%s%d":[{"%s":[%d]}]`, key, i, key, i)
		fmt.Fprintf(&odd, `,{"k%d":{"%d":"x"}}`, i, i)
	}
	for name, value := range map[string]string{
		"deep": deep, "wide": "{" + wide.String()[1:] + "}", "odd": "[" + odd.String()[1:] + "]",
		"long": `{"text":"` + strings.Repeat("x", 1<<20) + `"}`, "broken": `{"a":[1,{"b"`, "nothing": "",
	} {
		v := shapeOf(value)
		if n := encodedSize(v.text); n > maxShape+60 || n < len(`"null"`) {
			t.Errorf("%s: %d bytes:\n%s", name, n, v.text)
		}
	}
}
