//go:build !linux

package sandbox

func maybeOrphanGateway() {}
