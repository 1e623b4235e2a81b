package store

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pml-run/pml/internal/fault"
)

const (
	codeAdminShutdown      = "57P01"
	codeCrashShutdown      = "57P02"
	codeCannotConnect      = "57P03"
	codeCancelled          = "57014" // at its deadline, or while it waited for its turn
	classConnection        = "08"
	codeSerialization      = "40001"
	codeDeadlock           = "40P01"
	codeForeignKey         = "23503"
	classResources         = "53"
	codeInsufficientRights = "42501"
)

// lostConnection reports whether err says that the connection broke, rather than
// that the database has refused something.
func lostConnection(err error) bool {
	if err == nil {
		return false
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == codeAdminShutdown || pg.Code == codeCrashShutdown || strings.HasPrefix(pg.Code, classConnection)
	}
	return pgconn.SafeToRetry(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// transient reports whether a transaction that failed so may just be run again.
func transient(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code == codeSerialization || pg.Code == codeDeadlock)
}

// translate turns what pgx says into the store's own words. ctx is the caller's:
// its end is told apart from the end of the store's own deadline.
func translate(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return errNoRow
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && !outage(pg.Code) {
		return err // a refusal: internal, for the log
	}
	if _, ok := errors.AsType[*pgconn.PgError](err); ok || lostConnection(err) || timedOut(err) || cannotConnect(err) {
		return unavailable(err)
	}
	return err
}

func outage(code string) bool {
	return code == codeAdminShutdown || code == codeCrashShutdown || code == codeCannotConnect || code == codeCancelled ||
		strings.HasPrefix(code, classConnection) || strings.HasPrefix(code, classResources)
}

func timedOut(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == codeCancelled {
		return true
	}
	return errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err)
}

func cannotConnect(err error) bool {
	_, ok := errors.AsType[*pgconn.ConnectError](err)
	return ok
}

// unavailable is the fault for a database that cannot be reached or does not answer.
func unavailable(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	if timedOut(err) {
		return fault.New(fault.StorageUnavailable, "the database did not answer in time").
			WithHint("try again; if it stays so, run 'pml doctor'")
	}
	// %v: the cause belongs to a driver, callers match the code.
	return fault.New(fault.StorageUnavailable, "the database cannot be reached: %v", err).
		WithHint("try again in a moment; 'pml doctor' shows the database's state")
}
