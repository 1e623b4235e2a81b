// Package jobs does the work that no request waits for: it moves capabilities through
// their states, deletes what is too old, and keeps what is computed of the graph. The
// queue is River's tables in the store's database, so that of several gateways one does
// what is due, and a job whose gateway was killed is done by the next. It knows the
// database only through the interfaces beside each job; package daemon joins them.
//
// Each job may be run at any time, and twice: the second run finds nothing to do.
// What it computes, it computes outside of transactions.
package jobs
