package upstream

import (
	"strings"

	"github.com/pml-run/pml/internal/config"
)

// passed are the variables that a child needs to work at all. Everything else of
// our environment (keys, session variables of the client that started us) stays here.
var passed = map[string]bool{
	"PATH": true, "HOME": true, "USER": true, "LOGNAME": true, "LANG": true, "TMPDIR": true, "TZ": true,
	"HTTP_PROXY": true, "HTTPS_PROXY": true, "NO_PROXY": true, "ALL_PROXY": true,
	"NODE_EXTRA_CA_CERTS": true, "SSL_CERT_FILE": true, "SSL_CERT_DIR": true,
	"REQUESTS_CA_BUNDLE": true, "CURL_CA_BUNDLE": true, "DENO_CERT": true,
}

// passedPrefixes are families of such variables.
var passedPrefixes = []string{"LC_", "NPM_CONFIG_"}

// mergeEnv is the environment of a child: the allowed part of ours under the
// server's own.
func mergeEnv(environ []string, server config.Server) map[string]string {
	env := map[string]string{}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if mayPass(name) {
			env[name] = value
		}
	}
	for name, value := range server.Env {
		env[name] = value.Reveal()
	}
	return env
}

func mayPass(name string) bool {
	upper := strings.ToUpper(name)
	// npm and the proxy variables are also written in lower case.
	if passed[name] || passed[upper] && strings.HasSuffix(upper, "_PROXY") {
		return true
	}
	for _, p := range passedPrefixes {
		// npm_config__authToken and its like are credentials.
		if strings.HasPrefix(upper, p) && !strings.Contains(upper, "AUTH") && !strings.Contains(upper, "TOKEN") && !strings.Contains(upper, "PASSWORD") {
			return true
		}
	}
	return false
}
