// Package connector makes up what well-known servers answer, for dry runs: GitHub,
// Slack and SQL databases declare no output schema, so nothing but knowledge of them
// says what a program would be given. It owns that knowledge and nothing else: it
// calls no server, reads no clock and keeps nothing. Package execute asks it where
// neither an earlier result nor a schema can answer.
//
// The same seed and the same call make the same answer, and what two calls say of the
// same thing agrees: an issue has the title in a list that it has when it is read, and
// a list that is read page by page ends.
//
// A tool is known by its name and by the parameters that it declares, never by the
// name alone; where these are common words its server has to be known as well, by its
// configured name, by what its tools say of themselves, or by its other tools.
package connector
