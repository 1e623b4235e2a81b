package store

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pml-run/pml/internal/fault"
)

func TestTranslate(t *testing.T) {
	t.Parallel()
	gone, leave := context.WithCancelCause(t.Context())
	leave(errors.New("the caller has left"))
	pg := func(code string) error { return &pgconn.PgError{Code: code, Message: "what the database says"} }
	for name, c := range map[string]struct {
		ctx  context.Context //nolint:containedctx // an argument
		err  error
		code fault.Code // of the fault; Internal is none
		want string
	}{
		"the deadline":           {t.Context(), context.DeadlineExceeded, fault.StorageUnavailable, "did not answer in time"},
		"cancelled while it ran": {t.Context(), pg("57014"), fault.StorageUnavailable, "did not answer in time"},
		"stopped":                {t.Context(), pg("57P01"), fault.StorageUnavailable, "cannot be reached"},
		"no memory":              {t.Context(), pg("53200"), fault.StorageUnavailable, "cannot be reached"},
		"lost":                   {t.Context(), io.ErrUnexpectedEOF, fault.StorageUnavailable, "cannot be reached"},
		"refused":                {t.Context(), pg("42P01"), fault.Internal, "what the database says"},
		"no row":                 {t.Context(), pgx.ErrNoRows, fault.Internal, errNoRow.Error()},
		"the caller has left":    {gone, pg("57014"), fault.Internal, "the caller has left"},
		"said already":           {t.Context(), fault.New(fault.NotFound, "none"), fault.NotFound, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			err := translate(c.ctx, c.err)
			if err == nil || fault.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v (%s)", err, fault.CodeOf(err))
			}
		})
	}
	if err := translate(t.Context(), nil); err != nil {
		t.Errorf("nothing became %v", err)
	}
}
