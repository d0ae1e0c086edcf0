// Unary pointwise operators, one row each; the row is all that an operator needs. From it follow, wherever this file is
// included: the function f(x), the method x.f(), the in-place forms f_(x) and x.f_(), f_out(out, x), the gradient and
// its gradient, the kernel of each backend, and the checks of values and of gradients.
//
//   TENON_UNARY(Row, name, saves, integers, out, value, slope, low, high, known...)
//   TENON_UNARY_WITH(Row, name, saves, integers, out, count, (parameter, default, checked, ...), value, slope, low,
//                    high, known...)
//   TENON_UNARY_KERNEL(as TENON_UNARY_WITH, but for `out`)   kernel and gradient only: functions in ops/pointwise
//                                                 call them
//
//   y = value(x), dx = dy * slope(x, y), in T     see pointwise.h
//   saves                                         what the slope reads: pointwise::Saves
//   integers                                      what becomes of them: pointwise::Integers
//   out                                           the dtype of f_out's `out`, as in libtorch: the result's own (kSame),
//                                                 or one that the result can be cast to (kCastable)
//   low, high                                     where value and slope are well conditioned: the checks draw x there
//   known...                                      {x, y} from PyTorch 2.15 in float64, one for each branch of the
//                                                 formula; parameters have the values `checked`
//
// A user defines the kinds that it wants as macros; the others give nothing. Defined and undefined here: what makes
// parameter lists of the sixth column.
#if !defined(TENON_UNARY)
#define TENON_UNARY(...)
#endif
#if !defined(TENON_UNARY_WITH)
#define TENON_UNARY_WITH(...)
#endif
#if !defined(TENON_UNARY_KERNEL)
#define TENON_UNARY_KERNEL(...)
#endif

// const Scalar& alpha = 1.0, const Scalar& beta = 2.0
#define TENON_DECLARED_1(name, initial, checked) const Scalar& name = initial
#define TENON_DECLARED_2(name, initial, checked, ...) const Scalar& name = initial, TENON_DECLARED_1(__VA_ARGS__)
#define TENON_DECLARED_3(name, initial, checked, ...) const Scalar& name = initial, TENON_DECLARED_2(__VA_ARGS__)
// const Scalar& alpha, const Scalar& beta
#define TENON_DEFINED_1(name, initial, checked) const Scalar& name
#define TENON_DEFINED_2(name, initial, checked, ...) const Scalar& name, TENON_DEFINED_1(__VA_ARGS__)
#define TENON_DEFINED_3(name, initial, checked, ...) const Scalar& name, TENON_DEFINED_2(__VA_ARGS__)
// alpha, beta
#define TENON_NAMED_1(name, initial, checked) name
#define TENON_NAMED_2(name, initial, checked, ...) name, TENON_NAMED_1(__VA_ARGS__)
#define TENON_NAMED_3(name, initial, checked, ...) name, TENON_NAMED_2(__VA_ARGS__)
// 1.5, 0.75
#define TENON_CHECKED_0()
#define TENON_CHECKED_1(name, initial, checked) checked
#define TENON_CHECKED_2(name, initial, checked, ...) checked, TENON_CHECKED_1(__VA_ARGS__)
#define TENON_CHECKED_3(name, initial, checked, ...) checked, TENON_CHECKED_2(__VA_ARGS__)
// alpha and beta as local variables, from p
#define TENON_LOCAL_0()
#define TENON_LOCAL_1(name, initial, checked) [[maybe_unused]] const T name = *p;
#define TENON_LOCAL_2(name, initial, checked, ...) \
  [[maybe_unused]] const T name = *p++;            \
  TENON_LOCAL_1(__VA_ARGS__)
#define TENON_LOCAL_3(name, initial, checked, ...) \
  [[maybe_unused]] const T name = *p++;            \
  TENON_LOCAL_2(__VA_ARGS__)

// clang-format off
// Arithmetic.
TENON_UNARY(Neg, neg, kNothing, kSigned, kSame, -x, T(-1), -2, 2, {-1.5, 1.5}, {0.25, -0.25})
TENON_UNARY(Abs, abs, kInput, kSigned, kSame, T(x < T(0) ? -x : (x == T(0) ? T(0) : x)), T(x > T(0)) - T(x < T(0)),
            -2, 2, {-1.5, 1.5}, {0.25, 0.25})
TENON_UNARY(Sign, sign, kNothing, kSigned, kSame,
            T(T(x > T(0)) - T(x < T(0))), T(0), -2, 2, {-1.5, -1}, {0.25, 1}, {0, 0})
TENON_UNARY(Square, square, kInput, kSigned, kCastable, x * x, T(2) * x, -2, 2, {-1.5, 2.25}, {0.25, 0.0625})
TENON_UNARY(Sqrt, sqrt, kOutput, kConverted, kCastable, sqrt(x), T(0.5) / y,
            0.25, 3, {0.58, 0.7615773105863908}, {1.515, 1.2308533625091171}, {2.478, 1.574166446091391})
TENON_UNARY(Rsqrt, rsqrt, kOutput, kConverted, kCastable, T(1) / sqrt(x), T(-0.5) * y * y * y,
            0.25, 3, {0.58, 1.3130643285972257}, {1.515, 0.8124444637023874}, {2.478, 0.6352568386163805})
TENON_UNARY(Reciprocal, reciprocal, kOutput, kConverted, kCastable, T(1) / x, -(y * y),
            0.25, 3, {0.58, 1.7241379310344829}, {1.515, 0.6600660066006601}, {2.478, 0.4035512510088781})

// Exponentials and logarithms.
TENON_UNARY(Exp, exp, kOutput, kConverted, kCastable, exp(x), y,
            -2, 2, {-1.52, 0.21871188695221475}, {-0.16, 0.8521437889662113}, {1.24, 3.4556134647626755})
TENON_UNARY(Exp2, exp2, kOutput, kConverted, kCastable, exp2(x), y * T(0.693147180559945309),
            -2, 2, {-1.52, 0.34868591658760134}, {-0.16, 0.8950250709279725}, {1.24, 2.3619853228590606})
TENON_UNARY(Expm1, expm1, kOutput, kConverted, kCastable, expm1(x), y + T(1),
            -2, 2, {-1.52, -0.7812881130477852}, {-0.16, -0.14785621103378865}, {1.24, 2.4556134647626755})
TENON_UNARY(Log, log, kInput, kConverted, kCastable, log(x), T(1) / x,
            0.25, 3, {0.58, -0.5447271754416722}, {1.515, 0.4154154389613324}, {2.478, 0.9074517832069507})
TENON_UNARY(Log2, log2, kInput, kConverted, kCastable, log2(x), T(1) / (x * T(0.693147180559945309)),
            0.25, 3, {0.58, -0.7858751946471527}, {1.515, 0.5993177936982261}, {2.478, 1.3091761874785146})
TENON_UNARY(Log10, log10, kInput, kConverted, kCastable, log10(x), T(1) / (x * T(2.302585092994045684)),
            0.25, 3, {0.58, -0.23657200643706275}, {1.515, 0.1804126328383238}, {2.478, 0.3941013020400447})
TENON_UNARY(Log1p, log1p, kInput, kConverted, kCastable, log1p(x), T(1) / (x + T(1)),
            -0.5, 3, {-0.08, -0.08338160893905106}, {1.11, 0.7466879474879752}, {2.335, 1.204472679367587})

// Angles.
TENON_UNARY(Sin, sin, kInput, kConverted, kCastable, sin(x), cos(x),
            -2, 2, {-1.52, -0.998710143975583}, {-0.16, -0.15931820661424598}, {1.24, 0.945783999449539})
TENON_UNARY(Cos, cos, kInput, kConverted, kCastable, cos(x), -sin(x),
            -2, 2, {-1.52, 0.05077448493357918}, {-0.16, 0.9872272833756269}, {1.24, 0.32479628443877623})
TENON_UNARY(Tan, tan, kOutput, kConverted, kCastable, tan(x), T(1) + y * y,
            -1.2, 1.2, {-0.912, -1.291692575374936}, {-0.096, -0.09629600323422978}, {0.744, 0.9204513906603812})
TENON_UNARY(Asin, asin, kInput, kConverted, kCastable, asin(x), T(1) / sqrt(T(1) - x * x),
            -0.8, 0.8, {-0.608, -0.6535390622377225}, {-0.064, -0.0640437713941938}, {0.496, 0.5189860991552314})
TENON_UNARY(Acos, acos, kInput, kConverted, kCastable, acos(x), T(-1) / sqrt(T(1) - x * x),
            -0.8, 0.8, {-0.608, 2.2243353890326194}, {-0.064, 1.6348400981890905}, {0.496, 1.051810227639665})
TENON_UNARY(Atan, atan, kInput, kConverted, kCastable, atan(x), T(1) / (T(1) + x * x),
            -2, 2, {-1.52, -0.9888912086550111}, {-0.16, -0.1586552621864014}, {1.24, 0.8921338360465839})
TENON_UNARY(Sinh, sinh, kInput, kConverted, kCastable, sinh(x), cosh(x),
            -2, 2, {-1.52, -2.176756654094972}, {-0.16, -0.16068354101279944}, {1.24, 1.5831146234118125})
TENON_UNARY(Cosh, cosh, kInput, kConverted, kCastable, cosh(x), sinh(x),
            -2, 2, {-1.52, 2.3954685410471868}, {-0.16, 1.0128273299790107}, {1.24, 1.872498841350863})
TENON_UNARY(Tanh, tanh, kOutput, kConverted, kCastable, tanh(x), T(1) - y * y,
            -2, 2, {-1.52, -0.9086976584311125}, {-0.16, -0.1586485042974989}, {1.24, 0.8454555957266803})
TENON_UNARY(Asinh, asinh, kInput, kConverted, kCastable, asinh(x), T(1) / sqrt(x * x + T(1)),
            -2, 2, {-1.52, -1.2058062624600039}, {-0.16, -0.15932507986531574}, {1.24, 1.04133079200879})
TENON_UNARY(Acosh, acosh, kInput, kConverted, kCastable, acosh(x), T(1) / sqrt(x * x - T(1)),
            1.25, 4, {1.58, 1.030788124929643}, {2.515, 1.573322512699215}, {3.478, 1.9182656134963103})
TENON_UNARY(Atanh, atanh, kInput, kConverted, kCastable, atanh(x), T(1) / (T(1) - x * x),
            -0.8, 0.8, {-0.608, -0.7057423049742245}, {-0.064, -0.06408759671199883}, {0.496, 0.5439869452315269})
TENON_UNARY(Sinc, sinc, kInput, kConverted, kCastable,
            x == T(0) ? T(1) : sin(x * T(3.14159265358979324)) / (x * T(3.14159265358979324)),
            select(x == T(0), T(0),
                   (cos(x * T(3.14159265358979324)) * (x * T(3.14159265358979324)) - sin(x * T(3.14159265358979324))) /
                       (T(3.14159265358979324) * x * x)),
            0.25, 2, {0.5, 0.6366197723675814}, {1.25, -0.18006326323142122}, {1.9, -0.05177008647807719})
TENON_UNARY(Deg2rad, deg2rad, kNothing, kConverted, kCastable, x * T(0.017453292519943295), T(0.017453292519943295),
            -90, 90, {-68.4, -1.1938052083641215}, {-7.2, -0.12566370614359174}, {55.8, 0.9738937226128358})
TENON_UNARY(Rad2deg, rad2deg, kNothing, kConverted, kCastable, x * T(57.29577951308232), T(57.29577951308232),
            -2, 2, {-1.52, -87.08958485988514}, {-0.16, -9.167324722093172}, {1.24, 71.04676659622208})

// Special functions.
TENON_UNARY(Erf, erf, kInput, kConverted, kCastable, erf(x), T(1.128379167095512574) * exp(-(x * x)),
            -2, 2, {-1.52, -0.9684134969201231}, {-0.16, -0.17901181319810566}, {1.24, 0.9205051842990297})
TENON_UNARY(Erfc, erfc, kInput, kConverted, kCastable, erfc(x), T(-1.128379167095512574) * exp(-(x * x)),
            -2, 2, {-1.52, 1.9684134969201232}, {-0.16, 1.1790118131981058}, {1.24, 0.07949481570097033})
TENON_UNARY(Erfinv, erfinv, kOutput, kConverted, kCastable, erfinv(x), T(0.886226925452758014) * exp(y * y),
            -0.8, 0.8, {-0.608, -0.6052805660103369}, {-0.064, -0.05677948156381124}, {0.496, 0.4724953270879731})
TENON_UNARY(Lgamma, lgamma, kInput, kConverted, kCastable, lgamma(x), digamma(x),
            0.25, 3, {0.58, 0.42978709263811143}, {1.515, -0.12013018602562742}, {2.478, 0.26933251233819416})
TENON_UNARY(Digamma, digamma, kInput, kConverted, kCastable, digamma(x), polygamma(T(1), x),
            1.75, 4, {2.02, 0.43560284640656494}, {2.785, 0.8341015664971665}, {3.573, 1.1269889265250523})
TENON_UNARY(Ndtr, special_ndtr, kInput, kConverted, kCastable,
            T(0.5) * erfc(-(x * T(0.707106781186547524))), T(0.398942280401432678) * exp(T(-0.5) * x * x),
            -3, 3, {-2.28, 0.011303844238552796}, {-0.24, 0.40516512830220414}, {1.86, 0.9685572370192472})
TENON_UNARY(Entr, special_entr, kInput, kConverted, kCastable,
            x > T(0) ? -(x * log(x)) : (x == T(0) ? T(0) : (x != x ? x : -numeric_limits<T>::infinity())), -log(x) - T(1),
            0.25, 3, {0.58, 0.31594176175616984}, {2.478, -2.248665518786824})

// Rounding.
TENON_UNARY(Ceil, ceil, kNothing, kKept, kSame, ceil(x), T(0), -2, 2, {-1.5, -1}, {0.25, 1}, {2, 2})
TENON_UNARY(Floor, floor, kNothing, kKept, kSame, floor(x), T(0), -2, 2, {-1.5, -2}, {0.25, 0}, {2, 2})
TENON_UNARY(Round, round, kNothing, kKept, kSame, nearbyint(x), T(0), -2, 2, {-1.5, -2}, {0.5, 0}, {1.6, 2})
TENON_UNARY(Trunc, trunc, kNothing, kKept, kSame, trunc(x), T(0), -2, 2, {-1.5, -1}, {0.25, 0})
TENON_UNARY(Frac, frac, kNothing, kRefused, kSame, x - trunc(x), T(1), -2, 2, {-1.5, -0.5}, {0.25, 0.25})

// Activations.
TENON_UNARY(Sigmoid, sigmoid, kOutput, kConverted, kCastable, T(1) / (T(1) + exp(-x)), y * (T(1) - y),
            -3, 3, {-2.28, 0.09279295311715702}, {-0.24, 0.44028635073280703}, {1.86, 0.8652969480479719})
TENON_UNARY(LogSigmoid, log_sigmoid, kInput, kRefused, kCastable,
            (x < T(0) ? x : T(0)) - log1p(exp(x < T(0) ? x : -x)), sigmoid(-x),
            -3, 3, {-2.28, -2.3773845783108163}, {-0.24, -0.8203299666264259}, {1.86, -0.14468253842065193})
TENON_UNARY(Relu, relu, kOutput, kSigned, kSame, x > T(0) ? x : (x != x ? x : T(0)), T(1) - T(y <= T(0)),
            -2, 2, {-1.5, 0}, {0.25, 0.25})
TENON_UNARY(Relu6, relu6, kInput, kSigned, kCastable,
            x > T(6) ? T(6) : (x < T(0) ? T(0) : x), T(x > T(0)) * T(x < T(6)),
            -2, 8, {-1.5, 0}, {2.5, 2.5}, {7, 6})
TENON_UNARY(Silu, silu, kInput, kRefused, kCastable,
            x / (T(1) + exp(-x)), sigmoid(x) * (T(1) + x * (T(1) - sigmoid(x))),
            -3, 3, {-2.28, -0.21156793310711797}, {-0.24, -0.10566872417587368}, {1.86, 1.6094523233692277})
TENON_UNARY(Mish, mish, kInput, kRefused, kCastable,
            x * tanh(log1p(exp(x))),
            tanh(softplus1(x)) + x * sigmoid(x) * (T(1) - tanh(softplus1(x)) * tanh(softplus1(x))),
            -3, 3, {-2.28, -0.22133757667374093}, {-0.24, -0.12549725158720063}, {1.86, 1.793703864161032})
TENON_UNARY(Selu, selu, kOutput, kRefused, kCastable,
            T(1.0507009873554804934193) * (x > T(0) ? x : T(1.6732632423543772848170) * expm1(x)),
            select(y > T(0), T(1.0507009873554804934193), y + T(1.7580993408473768599402)),
            -2, 2, {-1.5, -1.3658143533672527}, {-0.25, -0.388890197478119}, {1.25, 1.3133762341943505})
TENON_UNARY(Hardsigmoid, hardsigmoid, kInput, kRefused, kCastable,
            x <= T(-3) ? T(0) : (x >= T(3) ? T(1) : x / T(6) + T(0.5)), T(x > T(-3)) * T(x < T(3)) * T(1.0 / 6.0),
            -4, 4, {-3.5, 0}, {-1.25, 0.2916666666666667}, {0.5, 0.5833333333333334}, {3.5, 1})
TENON_UNARY(Hardswish, hardswish, kInput, kRefused, kCastable,
            x <= T(-3) ? x * T(0) : (x >= T(3) ? x : x * (x + T(3)) / T(6)),
            select(x <= T(-3), T(0), select(x >= T(3), T(1), x / T(3) + T(0.5))),
            -4, 4, {-3.5, 0}, {-1.25, -0.3645833333333333}, {0.5, 0.2916666666666667}, {3.5, 3.5})
TENON_UNARY(Tanhshrink, tanhshrink, kInput, kConverted, kCastable, x - tanh(x), tanh(x) * tanh(x),
            -2, 2, {-1.52, -0.6113023415688875}, {-0.16, -0.0013514957025010932}, {1.24, 0.3945444042733197})
TENON_UNARY(Softsign, softsign, kInput, kConverted, kCastable,
            x / (T(1) + abs(x)), T(1) / ((T(1) + abs(x)) * (T(1) + abs(x))),
            -2, 2, {-1.52, -0.6031746031746031}, {-0.16, -0.13793103448275865}, {1.24, 0.5535714285714285})
TENON_UNARY_WITH(LeakyRelu, leaky_relu, kInput, kRefused, kCastable, 1, (negative_slope, 0.01, 0.2),
                 x > T(0) ? x : x * negative_slope, select(x > T(0), T(1), negative_slope),
                 -2, 2, {-1.5, -0.30000000000000004}, {0.25, 0.25})
TENON_UNARY_WITH(Elu, elu, kInput, kRefused, kCastable, 3, (alpha, 1.0, 1.5, scale, 1.0, 0.75, input_scale, 1.0, 0.5),
                 x < T(0) ? alpha * scale * expm1(x * input_scale) : x * scale,
                 select(x > T(0), scale, alpha * scale * input_scale * exp(x * input_scale)),
                 -2, 2, {-1.5, -0.5935876281663585}, {-0.25, -0.13219098459233017}, {1.25, 0.9375})
TENON_UNARY_WITH(Celu, celu, kInput, kRefused, kCastable, 1, (alpha, 1.0, 1.5),
                 x < T(0) ? alpha * expm1(x / alpha) : x, select(x > T(0), T(1), exp(x / alpha)),
                 -2, 2, {-1.5, -0.9481808382428365}, {-0.25, -0.2302774126640789}, {1.25, 1.25})
TENON_UNARY_WITH(Softplus, softplus, kInput, kRefused, kCastable, 2, (beta, 1.0, 1.5, threshold, 20.0, 3),
                 x * beta > threshold ? x : log1p(exp(x * beta)) / beta,
                 select(x * beta > threshold, T(1), sigmoid(x * beta)),
                 -3, 3, {-2.5, 0.015496976248283353}, {0.25, 0.5987488427598934}, {1.25, 1.3451167050704012},
                 {2.75, 2.75})
TENON_UNARY_WITH(Hardtanh, hardtanh, kInput, kSigned, kCastable, 2, (low, -1.0, -1.25, high, 1.0, 1.5),
                 x < low ? (low < high ? low : high) : (x > high ? high : x), T(x > low) * T(x < high),
                 -2, 2, {-1.5, -1.25}, {0.25, 0.25}, {1.75, 1.5})
TENON_UNARY_WITH(Hardshrink, hardshrink, kInput, kRefused, kCastable, 1, (lambda, 0.5, 0.75),
                 x >= -lambda && x <= lambda ? T(0) : x, select(x > lambda, T(1), T(x < -lambda)),
                 -2, 2, {-1.5, -1.5}, {0.25, 0}, {1.75, 1.75})
TENON_UNARY_WITH(Softshrink, softshrink, kInput, kRefused, kCastable, 1, (lambda, 0.5, 0.75),
                 x > lambda ? x - lambda : (x < -lambda ? x + lambda : (x != x ? x : T(0))), T(x > lambda) + T(x < -lambda),
                 -2, 2, {-1.5, -0.75}, {0.25, 0}, {1.75, 1})

// Called by functions with a signature or conversions of their own.
TENON_UNARY_KERNEL(Gelu, gelu, kInput, kRefused, 0, (),
                   T(0.5) * x * (T(1) + erf(x * T(0.707106781186547524))),
                   T(0.5) * (T(1) + erf(x * T(0.707106781186547524))) +
                       x * T(0.398942280401432678) * exp(T(-0.5) * x * x),
                   -3, 3, {-2.28, -0.02577276486390037}, {-0.24, -0.097239630792529}, {1.86, 1.8015164608557999})
TENON_UNARY_KERNEL(GeluTanh, gelu_tanh, kInput, kRefused, 0, (),
                   x * gelu_gate(x),
                   gelu_gate(x) + x * gelu_gate(x) * gelu_gate(-x) * T(1.59576912160573071) *
                       (T(1) + T(0.134145) * x * x),
                   -3, 3, {-2.28, -0.025447834208009803}, {-0.24, -0.09724067969781289}, {1.86, 1.801496620576928})
TENON_UNARY_KERNEL(Threshold, threshold, kInput, kSigned, 2, (bound, none, 0.75, replacement, none, 1.5),
                   x <= bound ? replacement : x, T(1) - T(x <= bound),
                   -2, 2, {-1.5, 1.5}, {0.25, 1.5}, {1.75, 1.75})
TENON_UNARY_KERNEL(PowScalar, pow_scalar, kInput, kConverted, 1, (exponent, none, 2.5),
                   power(x, exponent), select(exponent == T(0), T(0), exponent * power(x, exponent - T(1))),
                   0.25, 3, {0.58, 0.2561946072812618}, {1.515, 2.8250854089649877}, {2.478, 9.666143875561051})
TENON_UNARY_KERNEL(Polygamma, polygamma, kInput, kConverted, 1, (order, none, 2),
                   polygamma(order, x), polygamma(order + T(1), x),
                   0.75, 3, {1.02, -2.2790542052383533}, {1.785, -0.534868585424752}, {2.573, -0.2206589155426414})
TENON_UNARY_KERNEL(ClampMin, clamp_min, kInput, kSigned, 1, (low, none, 0.75), x < low ? low : x, T(x > low),
                   -2, 2, {-1.5, 0.75}, {0.25, 0.75}, {1.75, 1.75})
TENON_UNARY_KERNEL(ClampMax, clamp_max, kInput, kSigned, 1, (high, none, 0.75), x > high ? high : x, T(x < high),
                   -2, 2, {-1.5, -1.5}, {0.25, 0.25}, {1.75, 0.75})
TENON_UNARY_KERNEL(Clamp, clamp, kInput, kSigned, 2, (low, none, -1.25, high, none, 1.5),
                   x < low ? (low < high ? low : high) : (x > high ? high : x), T(x > low) * T(x < high),
                   -2, 2, {-1.5, -1.25}, {0.25, 0.25}, {1.75, 1.5})
TENON_UNARY_KERNEL(NanToNum, nan_to_num, kInput, kKept, 3, (nan, none, 0.75, posinf, none, 1.5, neginf, none, 0.5),
                   x != x ? nan : (x > numeric_limits<T>::max() ? posinf : (x < -numeric_limits<T>::max() ? neginf : x)),
                   T(x == x) * T(abs(x) < T(numeric_limits<double>::infinity())),
                   -2, 2, {-1.5, -1.5}, {0.25, 0.25})
// clang-format on

#undef TENON_UNARY
#undef TENON_UNARY_WITH
#undef TENON_UNARY_KERNEL
#undef TENON_DECLARED_1
#undef TENON_DECLARED_2
#undef TENON_DECLARED_3
#undef TENON_DEFINED_1
#undef TENON_DEFINED_2
#undef TENON_DEFINED_3
#undef TENON_NAMED_1
#undef TENON_NAMED_2
#undef TENON_NAMED_3
#undef TENON_CHECKED_0
#undef TENON_CHECKED_1
#undef TENON_CHECKED_2
#undef TENON_CHECKED_3
#undef TENON_LOCAL_0
#undef TENON_LOCAL_1
#undef TENON_LOCAL_2
#undef TENON_LOCAL_3
