package kernel_test

import (
	"encoding/binary"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// machine interprets the generated assembly of the int8 kernels, so that they are
// tested where the processor has no VNNI. What an instruction does is taken from the
// manual (Intel 64 and IA-32 Architectures Software Developer's Manual, vol. 2);
// operands stand in Go's order, the result last.
type machine struct {
	t         *testing.T
	memory    []byte // addresses are indices
	general   map[string]int
	vector    [32][16]uint32 // a register of 512 bits and its lower parts
	arguments map[string]int
	compared  int // the result that a jump looks at
}

// source is kernel_amd64.s: instructions by function, and constants.
type source struct {
	functions map[string][][]string
	constants map[string]uint32
}

func readSource(t *testing.T) source {
	t.Helper()
	text, err := os.ReadFile("kernel_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	s, name := source{map[string][][]string{}, map[string]uint32{}}, ""
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(strings.ReplaceAll(line, ",", " "))
		switch {
		case len(fields) == 0 || strings.HasPrefix(fields[0], "//") || fields[0][0] == '#' || fields[0] == "GLOBL":
		case fields[0] == "TEXT":
			name = strings.TrimSuffix(strings.TrimPrefix(fields[1], "·"), "(SB)")
		case fields[0] == "DATA":
			s.constants[strings.TrimSuffix(fields[1], "+0(SB)/4")+"+0(SB)"] = constant(t, fields[2])
		default:
			s.functions[name] = append(s.functions[name], fields)
		}
	}
	return s
}

func constant(t *testing.T, text string) uint32 {
	t.Helper()
	if f, err := strconv.ParseFloat(strings.Trim(text, "$()"), 32); err == nil && strings.Contains(text, "(") {
		return math.Float32bits(float32(f))
	}
	return uint32(number(t, strings.TrimPrefix(text, "$")))
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		t.Fatalf("%q is no number", text)
	}
	return int(n)
}

// run executes a function until it returns.
func (m *machine) run(s source, name string) {
	m.general = map[string]int{}
	code, labels := s.functions[name], map[string]int{}
	if len(code) == 0 {
		m.t.Fatalf("there is no %s", name)
	}
	for i, line := range code {
		if label, ok := strings.CutSuffix(line[0], ":"); ok {
			labels[label] = i
		}
	}
	for i := 0; code[i][0] != "RET"; i++ {
		op, args := code[i][0], code[i][1:]
		switch {
		case strings.HasSuffix(op, ":") || op == "VZEROUPPER": // nothing reads what that clears
		case op == "JG" && m.compared > 0 || op == "JNZ" && m.compared != 0:
			i = labels[args[0]]
		case op == "JG" || op == "JNZ":
		case op[0] == 'V':
			m.step(s, op, args)
		default:
			m.scalar(op, args)
		}
	}
}

func (m *machine) scalar(op string, args []string) {
	to := args[len(args)-1]
	switch op {
	case "MOVQ":
		m.general[to] = m.value(args[0])
	case "LEAQ":
		m.general[to] = m.address(args[0])
	case "ADDQ":
		m.general[to] += m.value(args[0])
	case "SUBQ":
		m.general[to] -= m.value(args[0])
	case "DECQ":
		m.general[to]--
	default:
		m.t.Fatalf("the machine does not know %s", op)
	}
	m.compared = m.general[to]
}

func (m *machine) value(arg string) int {
	if n, ok := strings.CutPrefix(arg, "$"); ok {
		return number(m.t, n)
	}
	if name, _, ok := strings.Cut(arg, "+"); ok {
		v, known := m.arguments[name]
		if !known {
			m.t.Fatalf("there is no argument %s", name)
		}
		return v
	}
	return m.general[arg]
}

// address is where disp(base)(index*scale) points to.
func (m *machine) address(arg string) int {
	disp, rest, _ := strings.Cut(arg, "(")
	base, index, indexed := strings.Cut(strings.TrimSuffix(rest, ")"), ")(")
	at := m.general[base]
	if disp != "" {
		at += number(m.t, disp)
	}
	if indexed {
		register, scale, _ := strings.Cut(index, "*")
		at += m.general[register] * number(m.t, scale)
	}
	return at
}

// width is how many numbers of 32 bits a register has.
func width(register string) int { return map[byte]int{'X': 4, 'Y': 8, 'Z': 16}[register[0]] } // memory has none

// load returns n numbers from a register, memory or a constant.
func (m *machine) load(s source, arg string, n int) (out [16]uint32) {
	switch c, isConstant := s.constants[arg]; {
	case isConstant:
		out[0] = c
	case strings.Contains(arg, "("):
		at := m.address(arg)
		for i := range n {
			out[i] = binary.LittleEndian.Uint32(m.memory[at+4*i:])
		}
	default:
		copy(out[:n], m.vector[number(m.t, arg[1:])][:])
	}
	return out
}

// store puts n numbers into memory, or into a register whose rest becomes zero.
func (m *machine) store(arg string, v [16]uint32, n int) {
	if strings.Contains(arg, "(") {
		for i, at := 0, m.address(arg); i < n; i++ {
			binary.LittleEndian.PutUint32(m.memory[at+4*i:], v[i])
		}
		return
	}
	clear(v[n:])
	m.vector[number(m.t, arg[1:])] = v
}

// lanes are operations on each number by itself: of the first and second operand and
// what the result held before.
var lanes = map[string]func(a, b, d float32) float32{
	"VMAXPS":      func(a, b, _ float32) float32 { return max(a, b) },
	"VMINPS":      func(a, b, _ float32) float32 { return min(a, b) },
	"VSUBPS":      func(a, b, _ float32) float32 { return b - a },
	"VMULPS":      func(a, b, _ float32) float32 { return b * a },
	"VFMADD231PS": func(a, b, d float32) float32 { return float32(float64(b)*float64(a) + float64(d)) },
	"VFMADD213PS": func(a, b, d float32) float32 { return float32(float64(b)*float64(d) + float64(a)) },
	"VSUBSS":      func(a, b, _ float32) float32 { return b - a },
	"VDIVSS":      func(a, b, _ float32) float32 { return b / a },
}

// step executes a vector instruction.
func (m *machine) step(s source, op string, args []string) {
	to := args[len(args)-1]
	if f, ok := lanes[op]; ok {
		n := width(to)
		a, b, d := m.load(s, args[0], n), m.load(s, args[1], n), m.load(s, to, n)
		out := b // a scalar operation keeps the rest of its second operand
		for i := range n {
			if i == 0 || strings.HasSuffix(op, "PS") {
				out[i] = math.Float32bits(f(math.Float32frombits(a[i]), math.Float32frombits(b[i]), math.Float32frombits(d[i])))
			}
		}
		m.store(to, out, n)
		return
	}
	m.move(s, op, args)
}

// move executes those that move, extend or convert.
func (m *machine) move(s source, op string, args []string) {
	from, to := args[len(args)-2], args[len(args)-1]
	n := max(width(from), width(to))
	a, out := m.load(s, from, n), [16]uint32{}
	switch op {
	case "VMOVUPS", "VMOVDQU32":
		out = a
	case "VMOVSS":
		out[0], n = a[0], max(1, width(to))
	case "VBROADCASTSS", "VPBROADCASTD":
		for i := range n {
			out[i] = m.load(s, from, 1)[0]
		}
	case "VPXORD":
		b := m.load(s, args[0], n)
		for i := range n {
			out[i] = a[i] ^ b[i]
		}
	case "VEXTRACTF64X4", "VEXTRACTF128":
		n = width(to)
		copy(out[:], a[n:2*n]) // the second half; there is no other use
	case "VPERMILPS":
		for i := range n {
			out[i] = a[number(m.t, args[0][1:])>>(2*i)&3]
		}
	case "VCVTDQ2PS":
		for i := range n {
			out[i] = math.Float32bits(float32(int32(a[i])))
		}
	case "VCVTPS2DQ":
		for i := range n {
			out[i] = uint32(int32(math.RoundToEven(float64(math.Float32frombits(a[i])))))
		}
	case "VPDPBUSD":
		out = dotBytes(m.load(s, args[0], n), a, m.load(s, to, n))
	case "VPMOVUSDB":
		for i := range n {
			m.memory[m.address(to)+i] = byte(min(a[i], 255))
		}
		return
	default:
		m.t.Fatalf("the machine does not know %s", op)
	}
	m.store(to, out, n)
}

// dotBytes adds to each sum four products of a signed byte and an unsigned one.
func dotBytes(signed, unsigned, sum [16]uint32) [16]uint32 {
	for i := range sum {
		for shift := 0; shift < 32; shift += 8 {
			sum[i] += uint32(int32(int8(signed[i]>>shift)) * int32(uint8(unsigned[i]>>shift)))
		}
	}
	return sum
}
