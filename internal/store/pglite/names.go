package pglite

import "maps"

// names keeps the prepared statements and portals of one connection apart from
// those of all others: the backend is one session and would mix them up.
type names struct {
	prefix     string
	statements map[string]struct{} // prefixed; what must be closed at the end
}

func (n *names) of(name string) []byte {
	if name == "" {
		return []byte{0}
	}
	return cstring(n.prefix + name)
}

// rename returns m with its statement and portal names prefixed. Messages that
// carry no name come back as they are.
func (n *names) rename(m message) (message, error) {
	b := m.body()
	switch m.kind() {
	case kindParse:
		name, rest, err := cutCString(b)
		if err != nil {
			return nil, err
		}
		if name != "" {
			n.statements[n.prefix+name] = struct{}{}
		}
		return newMessage(kindParse, n.of(name), rest), nil
	case kindBind:
		portal, rest, err := cutCString(b)
		if err != nil {
			return nil, err
		}
		statement, rest, err := cutCString(rest)
		if err != nil {
			return nil, err
		}
		return newMessage(kindBind, n.of(portal), n.of(statement), rest), nil
	case kindDescribe, kindClose:
		if len(b) == 0 {
			return nil, errMessage
		}
		name, rest, err := cutCString(b[1:])
		if err != nil {
			return nil, err
		}
		if m.kind() == kindClose && b[0] == 'S' {
			delete(n.statements, n.prefix+name)
		}
		return newMessage(m.kind(), b[:1], n.of(name), rest), nil
	case kindExecute:
		portal, rest, err := cutCString(b)
		if err != nil {
			return nil, err
		}
		return newMessage(kindExecute, n.of(portal), rest), nil
	}
	return m, nil
}

// closeAll is the unit that closes every statement that is still there.
func (n *names) closeAll() unit {
	u := newUnit()
	for name := range maps.Keys(n.statements) {
		u = append(u, newMessage(kindClose, []byte{'S'}, cstring(name))...)
	}
	if u.empty() {
		return u
	}
	return append(u, newMessage(kindSync)...)
}
