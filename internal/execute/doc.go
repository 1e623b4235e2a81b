// Package execute owns the way of one request from an intent to a recorded
// result: it validates, prepares the program, stores the run before it starts,
// lets the sandbox run it with every inner call passing the gate, commits the
// trace and only then answers. The order is decided here and nowhere else. It
// knows neither the client's protocol nor SQL nor how a worker is kept.
package execute
