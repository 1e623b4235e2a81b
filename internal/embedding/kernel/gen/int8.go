package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"   //nolint:revive,staticcheck // how avo programs are written
	. "github.com/mmcloughlin/avo/operand" //nolint:revive,staticcheck // how avo programs are written
	. "github.com/mmcloughlin/avo/reg"     //nolint:revive,staticcheck // how avo programs are written
)

// quantize turns a row of activations into bytes around 128.
func quantize() {
	TEXT("quantize", NOSPLIT, "func(x *float32, n int, dst *byte) float32")
	Pragma("noescape")
	Doc("quantize writes round(x·127/max|x|)+128 for n numbers, a multiple of 16, and returns max|x|/127.", "Needs AVX-512 F.")
	x, n, dst := Load(Param("x"), GP64()), Load(Param("n"), GP64()), Load(Param("dst"), GP64())
	mask, top := ZMM(), ZMM()
	VPBROADCASTD(address("magnitude"), mask)
	VPXORD(top, top, top)
	p, left := GP64(), GP64()
	MOVQ(x, p)
	MOVQ(n, left)
	Label("largest")
	z := ZMM()
	VPANDD(Mem{Base: p}, mask, z)
	VMAXPS(z, top, top)
	ADDQ(Imm(64), p)
	SUBQ(Imm(16), left)
	JG(LabelRef("largest"))
	half := YMM()
	VEXTRACTF64X4(Imm(1), top, half)
	VMAXPS(half, top.AsY(), half)
	across(half, VMAXPS)
	most, scale, factor := XMM(), XMM(), XMM()
	VMOVSS(address("most"), most)
	VDIVSS(most, half.AsX(), scale)
	Store(scale, ReturnIndex(0))
	VDIVSS(half.AsX(), most, factor)
	all, offset := ZMM(), ZMM()
	VBROADCASTSS(factor, all)
	VPBROADCASTD(address("offset"), offset)
	Label("round")
	VMULPS(Mem{Base: x}, all, z)
	VCVTPS2DQ(z, z)
	VPADDD(offset, z, z)
	VPMOVUSDB(z, Mem{Base: dst})
	ADDQ(Imm(64), x)
	ADDQ(Imm(16), dst)
	SUBQ(Imm(16), n)
	JG(LabelRef("round"))
	VZEROUPPER()
	RET()
}

// mulInt8 multiplies rows of bytes by one panel of 32 columns of int8 weights.
func mulInt8(rows int) {
	TEXT(fmt.Sprintf("mulInt8x%d", rows), NOSPLIT,
		"func(a *byte, lda uintptr, w *byte, c *float32, ldc uintptr, groups int, correction *int32, scale *float32, bias *float32, rowScale *float32)")
	Pragma("noescape")
	Doc(fmt.Sprintf("mulInt8x%d writes c[i][j] = bias[j] + scale[j]·rowScale[i]·(correction[j] + Σ a[i][x]·w[x][j]) for %d", rows, rows),
		"rows and the 32 columns of a panel; x < 4·groups, four of which lie together for each column. Strides are",
		"in bytes. Needs AVX-512 F and VNNI.")
	a, lda := Load(Param("a"), GP64()), Load(Param("lda"), GP64())
	w, groups := Load(Param("w"), GP64()), Load(Param("groups"), GP64())
	acc := startInt8(rows)
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

// startInt8 returns the accumulators, which begin with the correction for the
// 128 that is in each byte of a.
func startInt8(rows int) [][2]VecVirtual {
	correction := Load(Param("correction"), GP64())
	acc := make([][2]VecVirtual, rows)
	for i := range acc {
		for half := range acc[i] {
			acc[i][half] = ZMM()
			VMOVDQU32(Mem{Base: correction, Disp: 64 * half}, acc[i][half])
		}
	}
	return acc
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
	scale, bias, rowScale := Load(Param("scale"), GP64()), Load(Param("bias"), GP64()), Load(Param("rowScale"), GP64())
	c, ldc := Load(Param("c"), GP64()), Load(Param("ldc"), GP64())
	var s, b [2]VecVirtual
	for half := range s {
		s[half], b[half] = ZMM(), ZMM()
		VMOVUPS(Mem{Base: scale, Disp: 64 * half}, s[half])
		VMOVUPS(Mem{Base: bias, Disp: 64 * half}, b[half])
	}
	for i := range acc {
		row := ZMM()
		VBROADCASTSS(Mem{Base: rowScale, Disp: 4 * i}, row)
		for half, z := range acc[i] {
			VCVTDQ2PS(z, z)
			VMULPS(row, z, z)
			VFMADD213PS(b[half], s[half], z)
			VMOVUPS(z, Mem{Base: c, Disp: 64 * half})
		}
		ADDQ(ldc, c)
	}
}
