package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"   //nolint:revive,staticcheck // how avo programs are written
	. "github.com/mmcloughlin/avo/operand" //nolint:revive,staticcheck // how avo programs are written
	. "github.com/mmcloughlin/avo/reg"     //nolint:revive,staticcheck // how avo programs are written
)

// quantize turns a row of activations into bytes from the lowest to the highest.
func quantize() {
	TEXT("quantize", NOSPLIT, "func(x *float32, n int, dst *byte, step *float32, low *float32)")
	Pragma("noescape")
	Doc("quantize writes round((x-low)/step) for n numbers, a multiple of 16, where low is the lowest of them and", "step a 255th of their range. Needs AVX-512 F.")
	x, n, dst := Load(Param("x"), GP64()), Load(Param("n"), GP64()), Load(Param("dst"), GP64())
	high, low := ZMM(), ZMM()
	VMOVUPS(Mem{Base: x}, high)
	VMOVUPS(high, low)
	p, left := GP64(), GP64()
	MOVQ(x, p)
	MOVQ(n, left)
	Label("range")
	z := ZMM()
	VMOVUPS(Mem{Base: p}, z)
	VMAXPS(z, high, high)
	VMINPS(z, low, low)
	ADDQ(Imm(64), p)
	SUBQ(Imm(16), left)
	JG(LabelRef("range"))
	top, bottom := fold(high, VMAXPS), fold(low, VMINPS)
	VSUBSS(bottom, top, top)
	steps, step, factor := XMM(), XMM(), XMM()
	VMOVSS(address("steps"), steps)
	VDIVSS(steps, top, step)
	VDIVSS(top, steps, factor)
	VMOVSS(step, Mem{Base: Load(Param("step"), GP64())})
	VMOVSS(bottom, Mem{Base: Load(Param("low"), GP64())})
	all, base := ZMM(), ZMM()
	VBROADCASTSS(factor, all)
	VBROADCASTSS(bottom, base)
	Label("round")
	VMOVUPS(Mem{Base: x}, z)
	VSUBPS(base, z, z)
	VMULPS(all, z, z)
	VCVTPS2DQ(z, z)
	VPMOVUSDB(z, Mem{Base: dst})
	ADDQ(Imm(64), x)
	ADDQ(Imm(16), dst)
	SUBQ(Imm(16), n)
	JG(LabelRef("round"))
	VZEROUPPER()
	RET()
}

// fold returns the result of op over all lanes of z.
func fold(z VecVirtual, op func(...Op)) VecVirtual {
	half := YMM()
	VEXTRACTF64X4(Imm(1), z, half)
	op(half, z.AsY(), half)
	across(half, op)
	return half.AsX().(VecVirtual)
}

// mulInt8 multiplies rows of bytes by one panel of 32 columns of int8 weights.
func mulInt8(rows int) {
	TEXT(fmt.Sprintf("mulInt8x%d", rows), NOSPLIT,
		"func(a *byte, lda uintptr, w *byte, c *float32, ldc uintptr, groups int, sum *float32, scale *float32, bias *float32, step *float32, low *float32)")
	Pragma("noescape")
	Doc(fmt.Sprintf("mulInt8x%d writes c[i][j] = bias[j] + scale[j]·(step[i]·Σ a[i][x]·w[x][j] + low[i]·sum[j]) for %d rows", rows, rows),
		"and the 32 columns of a panel; x < 4·groups, four of which lie together for each column. Strides are in",
		"bytes. Needs AVX-512 F and VNNI.")
	a, lda := Load(Param("a"), GP64()), Load(Param("lda"), GP64())
	w, groups := Load(Param("w"), GP64()), Load(Param("groups"), GP64())
	acc := make([][2]VecVirtual, rows)
	for i := range acc {
		for half := range acc[i] {
			acc[i][half] = ZMM()
			VPXORD(acc[i][half], acc[i][half], acc[i][half])
		}
	}
	rowsOf := rowAddresses(rows, a, lda)
	loop := fmt.Sprintf("groups%d", rows)
	Label(loop)
	left, right := ZMM(), ZMM()
	VMOVDQU32(Mem{Base: w}, left)
	VMOVDQU32(Mem{Base: w, Disp: 64}, right)
	for i, address := range rowsOf {
		four := ZMM()
		VPBROADCASTD(address, four)
		VPDPBUSD(left, four, acc[i][0])
		VPDPBUSD(right, four, acc[i][1])
	}
	for i := 0; i < rows; i += 4 {
		ADDQ(Imm(4), rowsOf[i].Base)
	}
	ADDQ(Imm(128), w)
	DECQ(groups)
	JNZ(LabelRef(loop))
	finishInt8(acc)
	VZEROUPPER()
	RET()
}

// rowAddresses reaches every four rows from one pointer.
func rowAddresses(rows int, a, lda Register) []Mem {
	lda3 := GP64()
	LEAQ(Mem{Base: lda, Index: lda, Scale: 2}, lda3)
	out := make([]Mem, 0, rows)
	for i := 0; i < rows; i += 4 {
		base := GP64()
		if i == 0 {
			MOVQ(a, base)
		} else {
			LEAQ(Mem{Base: out[i-4].Base, Index: lda, Scale: 4}, base)
		}
		out = append(out, Mem{Base: base}, Mem{Base: base, Index: lda, Scale: 1},
			Mem{Base: base, Index: lda, Scale: 2}, Mem{Base: base, Index: lda3, Scale: 1})
	}
	return out
}

// finishInt8 turns the sums into fp32 and writes them.
func finishInt8(acc [][2]VecVirtual) {
	c, ldc := Load(Param("c"), GP64()), Load(Param("ldc"), GP64())
	sum, scale, bias := pair("sum"), pair("scale"), pair("bias")
	step, low := Load(Param("step"), GP64()), Load(Param("low"), GP64())
	for i := range acc {
		s, l := ZMM(), ZMM()
		VBROADCASTSS(Mem{Base: step, Disp: 4 * i}, s)
		VBROADCASTSS(Mem{Base: low, Disp: 4 * i}, l)
		for half, z := range acc[i] {
			VCVTDQ2PS(z, z)
			VMULPS(s, z, z)
			VFMADD231PS(l, sum[half], z)
			VFMADD213PS(bias[half], scale[half], z)
			VMOVUPS(z, Mem{Base: c, Disp: 64 * half})
		}
		ADDQ(ldc, c)
	}
}

// pair loads what a parameter points to for the 32 columns.
func pair(name string) (out [2]VecVirtual) {
	p := Load(Param(name), GP64())
	for half := range out {
		out[half] = ZMM()
		VMOVUPS(Mem{Base: p, Disp: 64 * half}, out[half])
	}
	return out
}
