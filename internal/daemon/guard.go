package daemon

import (
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
)

// loopback reports whether an address can only be reached from this machine.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// requireToken lets a request pass that carries the bearer token; an empty token
// lets all pass. Health needs none: it tells nothing.
func requireToken(token string, next http.Handler) http.Handler {
	if token == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if r.URL.Path != "/healthz" && (!ok || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a bearer token is required", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// health says whether requests can be served now.
func (g *Gateway) health(w http.ResponseWriter, _ *http.Request) {
	select {
	case <-g.assembled:
	default:
		http.Error(w, "starting", http.StatusServiceUnavailable)
		return
	}
	if g.failure != nil {
		http.Error(w, g.failure.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}
