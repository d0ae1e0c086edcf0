// Binary pointwise operators, one row each; the row is all that an operator needs. From it follow, wherever this file is
// included: f(a, b), a.f(b), a.f_(b) and f_out(out, a, b), each with a tensor or a number for b, the gradients and their
// gradients, the kernel of each backend, and the checks of values and of gradients.
//
//   TENON_BINARY(Row, name, reads, integers, value, slope_a, slope_b, low, high, known...)
//   TENON_BINARY_KERNEL(the same)                kernel and gradients only: functions in ops/pointwise call them
//
//   y = value(a, b), da = dy * slope_a(a, b, y), db = dy * slope_b(a, b, y), in T     see pointwise.h
//   reads                                        what the slopes read: pointwise::Reads
//   integers                                     what becomes of them: pointwise::Integers
//   low, high                                    where value and slopes are well conditioned: the checks draw a, b there
//   known...                                     {a, b, y} from PyTorch 2.15 in float64, one for each branch
#if !defined(TENON_BINARY)
#define TENON_BINARY(...)
#endif
#if !defined(TENON_BINARY_KERNEL)
#define TENON_BINARY_KERNEL(...)
#endif

// clang-format off
TENON_BINARY(Mul, mul, kPartner, kWrapped, a * b, b, a,
             -2, 2, {-1.75, 0.5, -0.875}, {1.25, -0.75, -0.9375}, {-0.5, -1.5, 0.75})
TENON_BINARY(Div, div, kDivisor, kConverted, a / b, T(1) / b, -(y / b),
             0.25, 3, {0.5, 1.75, 0.2857142857142857}, {1.5, 0.75, 2})
TENON_BINARY(Pow, pow, kResult, kSigned,
             power(a, b), select(b == T(0), T(0), b * power(a, b - T(1))), select(T(a == T(0)) * T(b >= T(0)) == T(1), T(0), y * log(a)),
             0.25, 3, {0.5, 1.75, 0.29730177875068026}, {1.5, 0.75, 1.3554030054147672})
TENON_BINARY(Maximum, maximum, kOperands, kSigned,
             a != a ? a : (b != b ? b : (a > b ? a : b)),
             T(1) - T(a < b) - T(0.5) * T(a == b), T(1) - T(b < a) - T(0.5) * T(a == b),
             -2, 2, {-1.75, 0.5, 0.5}, {1.25, -0.75, 1.25}, {-0.5, -1.5, -0.5})
TENON_BINARY(Minimum, minimum, kOperands, kSigned,
             a != a ? a : (b != b ? b : (a < b ? a : b)),
             T(1) - T(a > b) - T(0.5) * T(a == b), T(1) - T(b > a) - T(0.5) * T(a == b),
             -2, 2, {-1.75, 0.5, -1.75}, {1.25, -0.75, -0.75}, {-0.5, -1.5, -1.5})
TENON_BINARY(Atan2, atan2, kOperands, kConverted, atan2(a, b),
             select(a * a + b * b == T(0), T(0), b / (a * a + b * b)),
             select(a * a + b * b == T(0), T(0), -(a / (a * a + b * b))),
             0.25, 2, {0.5, 1.75, 0.27829965900511133}, {1.5, 0.75, 1.1071487177940904})
TENON_BINARY(Hypot, hypot, kResult, kConverted, hypot(a, b), a / y, b / y,
             0.25, 2, {0.5, 1.75, 1.8200274723201295}, {1.5, 0.75, 1.6770509831248424})
TENON_BINARY(Fmod, fmod, kOperands, kDivided, remainder_c(a, b), T(1), -trunc(a / b),
             -2, 2, {-1.75, 0.5, -0.25}, {1.25, -0.75, 0.5}, {-0.5, -1.5, -0.5})
TENON_BINARY(Remainder, remainder, kOperands, kDivided, remainder_floor(a, b), T(1), -divide_floor(a, b),
             -2, 2, {-1.75, 0.5, 0.25}, {1.25, -0.75, -0.25}, {-0.5, -1.5, -0.5})
TENON_BINARY(FloorDivide, floor_divide, kOperands, kDivided, divide_floor(a, b), T(0), T(0),
             -2, 2, {-1.75, 0.5, -4}, {1.25, -0.75, -2}, {-0.5, -1.5, 0})
TENON_BINARY(LogAddExp, logaddexp, kOperands, kConverted, log_add_exp(a, b),
             T(1) / (T(1) + exp(b - a)), T(1) / (T(1) + exp(a - b)),
             -2, 2, {-1.75, 0.5, 0.6002065589167472}, {1.25, -0.75, 1.3769280110429725},
             {-0.5, -1.5, -0.18673831248177714})
TENON_BINARY(LogAddExp2, logaddexp2, kOperands, kRefused,
             log_add_exp(a * T(0.693147180559945309), b * T(0.693147180559945309)) * T(1.442695040888963407),
             T(1) / (T(1) + exp2(b - a)), T(1) / (T(1) + exp2(a - b)),
             -2, 2, {-1.75, 0.5, 0.7752742239656296}, {1.25, -0.75, 1.5719280948873624},
             {-0.5, -1.5, 0.08496250072115617})
TENON_BINARY(Ldexp, ldexp, kResult, kConverted, a * exp2(b), exp2(b), y * T(0.693147180559945309),
             -2, 2, {-1.75, 0.5, -2.4748737341529163}, {1.25, -0.75, 0.7432544468767006}, {-0.5, -1.5, -0.1767766952966369})
TENON_BINARY(Copysign, copysign, kResult, kConverted, copysign(a, b), select(a == T(0), T(0), y / a), T(0),
             -2, 2, {-1.75, 0.5, 1.75}, {1.25, -0.75, -1.25}, {-0.5, -1.5, -0.5})

// Called by functions with a signature of their own: add(a, b, alpha), div(a, b, "trunc").
TENON_BINARY_KERNEL(Add, add, kNothing, kWrapped, a + b, T(1), T(1),
                    -2, 2, {-1.75, 0.5, -1.25}, {1.25, -0.75, 0.5}, {-0.5, -1.5, -2})
TENON_BINARY_KERNEL(Sub, sub, kNothing, kWrapped, a - b, T(1), T(-1),
                    -2, 2, {-1.75, 0.5, -2.25}, {1.25, -0.75, 2}, {-0.5, -1.5, 1})
TENON_BINARY_KERNEL(TruncDivide, trunc_divide, kOperands, kDivided, divide_trunc(a, b), T(0), T(0),
                    -2, 2, {-1.75, 0.5, -3}, {1.25, -0.75, -1}, {-0.5, -1.5, 0})
// clang-format on

#undef TENON_BINARY
#undef TENON_BINARY_KERNEL
