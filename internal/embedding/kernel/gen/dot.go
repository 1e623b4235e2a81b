package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"   //nolint:revive,staticcheck // how avo programs are written
	. "github.com/mmcloughlin/avo/operand" //nolint:revive,staticcheck // how avo programs are written
	. "github.com/mmcloughlin/avo/reg"     //nolint:revive,staticcheck // how avo programs are written
)

// columns is how many columns of the result one tile of the dot kernels has.
const columns = 4

// dot multiplies tiles of rows × 4 inner products. Both operands are read along
// their rows, so that weights need no packing: 12 accumulators, three rows of a and
// one of b at a time are exactly the 16 registers of AVX2.
func dot(rows int) {
	TEXT(fmt.Sprintf("dot%dx%d", rows, columns), NOSPLIT,
		"func(a *float32, lda uintptr, b *float32, ldb uintptr, c *float32, ldc uintptr, bias *float32, k int, tiles int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("dot%dx%d writes c[i][j] = bias[j] + Σ a[i][x]·b[j][x] for j < %d and i < %d·tiles; x < k, a", rows, columns, columns, rows),
		"multiple of 8. Strides are in bytes. Needs AVX2 and FMA.")
	a, lda := Load(Param("a"), GP64()), Load(Param("lda"), GP64())
	b, ldb := Load(Param("b"), GP64()), Load(Param("ldb"), GP64())
	c, ldc := Load(Param("c"), GP64()), Load(Param("ldc"), GP64())
	tiles := Load(Param("tiles"), GP64())
	ldb3 := GP64()
	LEAQ(Mem{Base: ldb, Index: ldb, Scale: 2}, ldb3)

	tile := fmt.Sprintf("tile%d", rows)
	Label(tile)
	acc := accumulate(rows, a, lda, b, ldb, ldb3)
	bias := Load(Param("bias"), GP64())
	for i := range rows {
		store(acc[i], bias, c)
		ADDQ(ldc, c)
		ADDQ(lda, a)
	}
	DECQ(tiles)
	JNZ(LabelRef(tile))
	VZEROUPPER()
	RET()
}

// accumulate runs over k for one tile.
func accumulate(rows int, a, lda, b, ldb, ldb3 Register) [][columns]VecVirtual {
	acc := make([][columns]VecVirtual, rows)
	for i := range acc {
		for j := range columns {
			acc[i][j] = YMM()
			VXORPS(acc[i][j], acc[i][j], acc[i][j])
		}
	}
	ap, bp, k := GP64(), GP64(), Load(Param("k"), GP64())
	MOVQ(a, ap)
	MOVQ(b, bp)
	loop := fmt.Sprintf("inner%d", rows)
	Label(loop)
	left := make([]VecVirtual, rows)
	for i, at := range []Mem{{Base: ap}, {Base: ap, Index: lda, Scale: 1}, {Base: ap, Index: lda, Scale: 2}}[:rows] {
		left[i] = YMM()
		VMOVUPS(at, left[i])
	}
	for j, at := range []Mem{{Base: bp}, {Base: bp, Index: ldb, Scale: 1}, {Base: bp, Index: ldb, Scale: 2}, {Base: bp, Index: ldb3, Scale: 1}} {
		right := YMM()
		VMOVUPS(at, right)
		for i := range rows {
			VFMADD231PS(left[i], right, acc[i][j])
		}
	}
	ADDQ(Imm(32), ap)
	ADDQ(Imm(32), bp)
	SUBQ(Imm(8), k)
	JG(LabelRef(loop))
	return acc
}

// store adds up the lanes of one row's accumulators and writes the four sums.
func store(acc [columns]VecVirtual, bias, c Register) {
	VHADDPS(acc[1], acc[0], acc[0])
	VHADDPS(acc[3], acc[2], acc[2])
	VHADDPS(acc[2], acc[0], acc[0])
	high := XMM()
	VEXTRACTF128(Imm(1), acc[0], high)
	VADDPS(acc[0].AsX(), high, high)
	VADDPS(Mem{Base: bias}, high, high)
	VMOVUPS(high, Mem{Base: c})
}

// widen turns fp16 into fp32.
func widen() {
	TEXT("widen", NOSPLIT, "func(dst *float32, src *byte, n int)")
	Pragma("noescape")
	Doc("widen turns n little-endian fp16 numbers into fp32; n is a multiple of 8. Needs F16C.")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	Label("half")
	y := YMM()
	VCVTPH2PS(Mem{Base: src}, y)
	VMOVUPS(y, Mem{Base: dst})
	ADDQ(Imm(16), src)
	ADDQ(Imm(32), dst)
	SUBQ(Imm(8), n)
	JG(LabelRef("half"))
	VZEROUPPER()
	RET()
}
