package main

import (
	. "github.com/mmcloughlin/avo/build"   //nolint:revive,staticcheck // how avo programs are written
	. "github.com/mmcloughlin/avo/operand" //nolint:revive,staticcheck // how avo programs are written
	. "github.com/mmcloughlin/avo/reg"     //nolint:revive,staticcheck // how avo programs are written
)

// constants of expf (Cephes, single/expf.c) and of erf (Abramowitz and Stegun,
// Handbook of Mathematical Functions, 7.1.26: absolute error below 1.5e-7).
var constants = []struct {
	name  string
	value Constant
}{
	{"lowest", F32(-87)}, // e^x is a normal number from here
	{"highest", F32(88)},
	{"log2e", F32(1.44269504088896341)},
	{"ln2high", F32(0.693359375)},
	{"ln2low", F32(-2.12194440e-4)},
	{"exp0", F32(1.9875691500e-4)},
	{"exp1", F32(1.3981999507e-3)},
	{"exp2", F32(8.3334519073e-3)},
	{"exp3", F32(4.1665795894e-2)},
	{"exp4", F32(1.6666665459e-1)},
	{"exp5", F32(5.0000001201e-1)},
	{"one", F32(1)},
	{"half", F32(0.5)},
	{"sqrthalf", F32(0.70710678118654752)},
	{"erfp", F32(0.3275911)},
	{"erf1", F32(0.254829592)},
	{"erf2", F32(-0.284496736)},
	{"erf3", F32(1.421413741)},
	{"erf4", F32(-1.453152027)},
	{"erf5", F32(1.061405429)},
	{"exponent", U32(127)},
	{"magnitude", U32(0x7fffffff)},
	{"sign", U32(0x80000000)},
	{"steps", F32(255)},
}

// address returns where the named constant is, and writes it down at its first use.
var address = func() func(string) Mem {
	known := map[string]Mem{}
	return func(name string) Mem {
		if m, ok := known[name]; ok {
			return m
		}
		for _, c := range constants {
			if c.name == name {
				known[name] = ConstData(name, c.value)
				return known[name]
			}
		}
		panic("no constant " + name)
	}
}()

// constant returns a register with the named constant in all lanes.
func constant(name string) VecVirtual {
	y := YMM()
	VBROADCASTSS(address(name), y)
	return y
}

// exp replaces x by e^x: x = n·ln2 + r, a polynomial for e^r, n into the exponent.
func exp(x VecVirtual) {
	VMAXPS(constant("lowest"), x, x)
	VMINPS(constant("highest"), x, x)
	n := YMM()
	VMULPS(constant("log2e"), x, n)
	VROUNDPS(Imm(0), n, n)
	VFNMADD231PS(constant("ln2high"), n, x)
	VFNMADD231PS(constant("ln2low"), n, x)
	p := constant("exp0")
	for _, next := range []string{"exp1", "exp2", "exp3", "exp4", "exp5"} {
		VFMADD213PS(constant(next), x, p)
	}
	square := YMM()
	VMULPS(x, x, square)
	VFMADD213PS(x, square, p)
	VADDPS(constant("one"), p, p)
	VCVTPS2DQ(n, n)
	VPADDD(constant("exponent"), n, n)
	VPSLLD(Imm(23), n, n)
	VMULPS(n, p, x)
}

// softmax is one row of attention.
func softmax() {
	TEXT("softmax", NOSPLIT, "func(x *float32, n int, scale float32)")
	Pragma("noescape")
	Doc("softmax replaces x by e^(scale·x) divided by the sum of those; n is a multiple of 8, scale is", "positive. Needs AVX2 and FMA.")
	x, n := Load(Param("x"), GP64()), Load(Param("n"), GP64())
	top := YMM()
	VMOVUPS(Mem{Base: x}, top)
	each(x, n, "highest", func(p Register) { VMAXPS(Mem{Base: p}, top, top) })
	across(top, VMAXPS)
	VBROADCASTSS(top.AsX(), top)
	scale, sum := YMM(), YMM()
	VBROADCASTSS(NewParamAddr("scale", 16), scale)
	VXORPS(sum, sum, sum)
	each(x, n, "power", func(p Register) {
		y := YMM()
		VMOVUPS(Mem{Base: p}, y)
		VSUBPS(top, y, y)
		VMULPS(scale, y, y)
		exp(y)
		VADDPS(y, sum, sum)
		VMOVUPS(y, Mem{Base: p})
	})
	across(sum, VADDPS)
	factor := XMM()
	VMOVSS(address("one"), factor)
	VDIVSS(sum.AsX(), factor, factor)
	all := YMM()
	VBROADCASTSS(factor, all)
	each(x, n, "divide", func(p Register) {
		y := YMM()
		VMULPS(Mem{Base: p}, all, y)
		VMOVUPS(y, Mem{Base: p})
	})
	VZEROUPPER()
	RET()
}

// each runs body for every eight numbers from x on.
func each(x, n Register, label string, body func(p Register)) {
	p, left := GP64(), GP64()
	MOVQ(x, p)
	MOVQ(n, left)
	Label(label)
	body(p)
	ADDQ(Imm(32), p)
	SUBQ(Imm(8), left)
	JG(LabelRef(label))
}

// across leaves the result of op over all lanes of y in its first four lanes.
func across(y VecVirtual, op func(...Op)) {
	x, z := y.AsX(), XMM()
	VEXTRACTF128(Imm(1), y, z)
	op(z, x, x)
	VPERMILPS(Imm(0x4e), x, z)
	op(z, x, x)
	VPERMILPS(Imm(0xb1), x, z)
	op(z, x, x)
}

// gelu is the activation of BERT, x·(1+erf(x/√2))/2.
func gelu() {
	TEXT("gelu", NOSPLIT, "func(x *float32, n int)")
	Pragma("noescape")
	Doc("gelu replaces each of n numbers by x·(1+erf(x/√2))/2; n is a multiple of 8. Needs AVX2 and FMA.")
	x, n := Load(Param("x"), GP64()), Load(Param("n"), GP64())
	each(x, n, "gelu", func(p Register) {
		y, z, abs, t, power := YMM(), YMM(), YMM(), YMM(), YMM()
		VMOVUPS(Mem{Base: p}, y)
		VMULPS(constant("sqrthalf"), y, z)
		VANDPS(constant("magnitude"), z, abs)
		VMOVAPS(abs, t)
		VFMADD213PS(constant("one"), constant("erfp"), t)
		VDIVPS(t, constant("one"), t)
		sum := constant("erf5")
		for _, next := range []string{"erf4", "erf3", "erf2", "erf1"} {
			VFMADD213PS(constant(next), t, sum)
		}
		VMULPS(t, sum, sum)
		VMULPS(abs, abs, abs)
		VXORPS(constant("sign"), abs, power)
		exp(power)
		VMULPS(power, sum, sum)
		erf := constant("one")
		VSUBPS(sum, erf, erf)
		VANDPS(constant("sign"), z, z)
		VORPS(z, erf, erf)
		VADDPS(constant("one"), erf, erf)
		VMULPS(constant("half"), y, y)
		VMULPS(erf, y, y)
		VMOVUPS(y, Mem{Base: p})
	})
	VZEROUPPER()
	RET()
}

// addNorm is the end of each half of a layer.
func addNorm() {
	TEXT("addNorm", NOSPLIT, "func(x *float32, t *float32, gain *float32, bias *float32, n int, eps float32)")
	Pragma("noescape")
	Doc("addNorm adds t to x, takes away the mean, divides by √(variance+eps), multiplies by gain and adds", "bias; n is a multiple of 8. Needs AVX2 and FMA.")
	x, t, n := Load(Param("x"), GP64()), Load(Param("t"), GP64()), Load(Param("n"), GP64())
	mean, variance := YMM(), YMM()
	VXORPS(mean, mean, mean)
	each(x, n, "add", func(p Register) {
		y := YMM()
		VMOVUPS(Mem{Base: p}, y)
		VADDPS(Mem{Base: t}, y, y)
		VADDPS(y, mean, mean)
		VMOVUPS(y, Mem{Base: p})
		ADDQ(Imm(32), t)
	})
	count := XMM()
	VCVTSI2SSQ(n, count, count)
	across(mean, VADDPS)
	VDIVSS(count, mean.AsX(), mean.AsX())
	VBROADCASTSS(mean.AsX(), mean)
	VXORPS(variance, variance, variance)
	each(x, n, "spread", func(p Register) {
		y := YMM()
		VMOVUPS(Mem{Base: p}, y)
		VSUBPS(mean, y, y)
		VFMADD231PS(y, y, variance)
	})
	across(variance, VADDPS)
	v := variance.AsX()
	VDIVSS(count, v, v)
	VADDSS(NewParamAddr("eps", 40), v, v)
	VSQRTSS(v, v, v)
	factor, all := XMM(), YMM()
	VMOVSS(address("one"), factor)
	VDIVSS(v, factor, factor)
	VBROADCASTSS(factor, all)
	gain, bias := Load(Param("gain"), GP64()), Load(Param("bias"), GP64())
	each(x, n, "scale", func(p Register) {
		y, b := YMM(), YMM()
		VMOVUPS(Mem{Base: p}, y)
		VSUBPS(mean, y, y)
		VMULPS(all, y, y)
		VMOVUPS(Mem{Base: bias}, b)
		VFMADD132PS(Mem{Base: gain}, b, y)
		VMOVUPS(y, Mem{Base: p})
		ADDQ(Imm(32), gain)
		ADDQ(Imm(32), bias)
	})
	VZEROUPPER()
	RET()
}
