// Pointwise operators without a gradient, one row each; the row is all that an operator needs. From it follow, wherever
// this file is included: the function, the method, the _out form, the kernel of each backend, and the checks.
//
//   TENON_COMPARISON(Row, name, value)           bool from a and b of every dtype, in place too; b may be a number
//   TENON_PREDICATE(Row, name, out, value)       bool from x of every dtype; `out` as in unary.inl
//   TENON_BITWISE(Row, name, value)              a's and b's dtype, bool or an integer, in place too; b may be a number
//   TENON_BITWISE_KERNEL(Row, name, value)       the kernel only
#if !defined(TENON_COMPARISON)
#define TENON_COMPARISON(...)
#endif
#if !defined(TENON_PREDICATE)
#define TENON_PREDICATE(...)
#endif
#if !defined(TENON_BITWISE)
#define TENON_BITWISE(...)
#endif
#if !defined(TENON_BITWISE_KERNEL)
#define TENON_BITWISE_KERNEL(...)
#endif

// clang-format off
TENON_COMPARISON(Eq, eq, a == b)
TENON_COMPARISON(Ne, ne, a != b)
TENON_COMPARISON(Lt, lt, a < b)
TENON_COMPARISON(Le, le, a <= b)
TENON_COMPARISON(Gt, gt, a > b)
TENON_COMPARISON(Ge, ge, a >= b)
TENON_COMPARISON(LogicalAnd, logical_and, a != T(0) && b != T(0))
TENON_COMPARISON(LogicalOr, logical_or, a != T(0) || b != T(0))
TENON_COMPARISON(LogicalXor, logical_xor, (a != T(0)) != (b != T(0)))

TENON_PREDICATE(IsNan, isnan, kSame, x != x)
TENON_PREDICATE(IsInf, isinf, kSame, x == x && x - x != T(0))
TENON_PREDICATE(IsFinite, isfinite, kSame, x - x == T(0))
TENON_PREDICATE(LogicalNot, logical_not, kCastable, x == T(0))
TENON_PREDICATE(Signbit, signbit, kCastable, x < T(0) || (x == T(0) && is_negative_zero(x)))

TENON_BITWISE(BitwiseAnd, bitwise_and, a & b)
TENON_BITWISE(BitwiseOr, bitwise_or, a | b)
TENON_BITWISE(BitwiseXor, bitwise_xor, a ^ b)
TENON_BITWISE_KERNEL(ShiftLeft, shift_left, a << b)
TENON_BITWISE_KERNEL(ShiftRight, shift_right, a >> b)
// clang-format on

#undef TENON_COMPARISON
#undef TENON_PREDICATE
#undef TENON_BITWISE
#undef TENON_BITWISE_KERNEL
