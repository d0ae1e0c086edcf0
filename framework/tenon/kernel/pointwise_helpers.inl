// Functions that rows use and <cmath> lacks, for float and double (and integers where a row takes integers). Included
// inside pointwise.h's namespace. Not Boost.Math: kernels of every backend are made from these lines, vectors of
// sixteen floats and CUDA's among them, and their values are PyTorch's at the edges too. A function is added here and
// nowhere else:
//
//   - One that is an operator too has the operator's name: slopes of tensors then find the operator
//     (ops/pointwise/symbolic.h).
//   - TENON_OF_DRESSED_1(name) or _2 after it lets a backend's dressed number {v} use it. A backend that has a better
//     one for its numbers declares it as their friend.
#define TENON_OF_DRESSED_1(name)       \
  template <class Number>              \
  requires requires(Number x) { x.v; } \
  TENON_HOST_DEVICE inline Number name(Number x) { return Number(name(x.v)); }
#define TENON_OF_DRESSED_2(name)       \
  template <class Number>              \
  requires requires(Number x) { x.v; } \
  TENON_HOST_DEVICE inline Number name(Number a, Number b) { return Number(name(a.v, b.v)); }

template <class T>
TENON_HOST_DEVICE inline T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

template <class T>
TENON_HOST_DEVICE inline T softplus1(T x) {
  return std::log1p(std::exp(x));
}

/// What GELU's tanh form multiplies x with: (1 + tanh(u)) / 2 for u = sqrt(2 / pi) (x + 0.044715 x^3), which is
/// sigmoid(2 u) and loses no digits where tanh(u) is close to -1.
template <class T>
TENON_HOST_DEVICE inline T gelu_gate(T x) {
  return sigmoid(T(1.59576912160573071) * (x + T(0.044715) * x * x * x));
}

/// Of integers, what is too large wraps, as in PyTorch.
template <class T>
TENON_HOST_DEVICE constexpr T power(T a, T b) {
  if constexpr (std::numeric_limits<T>::is_integer) {
    if (b < T(0)) return a == T(1) ? T(1) : (a == T(-1) ? (b % T(2) != T(0) ? T(-1) : T(1)) : T(0));
    // Without a sign: the last square is not used and may be too large, which is undefined of signed integers.
    using Bits = std::conditional_t<(sizeof(T) > 4), unsigned long long, unsigned>;
    Bits result = 1, square = static_cast<Bits>(a);
    while (b > T(0)) {
      if (b % T(2) != T(0)) result *= square;
      b = static_cast<T>(b / T(2));
      square *= square;
    }
    return static_cast<T>(result);
  } else {
    return std::pow(a, b);
  }
}

/// C's fmod: the sign of a.
template <class T>
TENON_HOST_DEVICE inline T remainder_c(T a, T b) {
  if constexpr (std::numeric_limits<T>::is_integer) {
    return static_cast<T>(a % b);
  } else {
    return std::fmod(a, b);
  }
}

/// Python's modulo: the sign of b.
template <class T>
TENON_HOST_DEVICE inline T remainder_floor(T a, T b) {
  T r = remainder_c(a, b);
  if (r != T(0) && ((r < T(0)) != (b < T(0)))) r = static_cast<T>(r + b);
  return r;
}
TENON_OF_DRESSED_2(remainder_floor)

template <class T>
TENON_HOST_DEVICE inline T divide_trunc(T a, T b) {
  if constexpr (std::numeric_limits<T>::is_integer) {
    return static_cast<T>(a / b);
  } else {
    return std::trunc(a / b);
  }
}

/// Python's floor division, exact where the quotient rounds up to an integer.
template <class T>
TENON_HOST_DEVICE inline T divide_floor(T a, T b) {
  if constexpr (std::numeric_limits<T>::is_integer) {
    const T quotient = static_cast<T>(a / b);
    const T rest = static_cast<T>(a % b);
    return rest != T(0) && ((rest < T(0)) != (b < T(0))) ? static_cast<T>(quotient - T(1)) : quotient;
  } else {
    if (b == T(0)) return a / b;
    const T rest = std::fmod(a, b);
    T quotient = (a - rest) / b;
    if (rest != T(0) && ((b < T(0)) != (rest < T(0)))) quotient -= T(1);
    if (quotient == T(0)) return std::copysign(T(0), a / b);
    T floored = std::floor(quotient);
    if (quotient - floored > T(0.5)) floored += T(1);
    return floored;
  }
}
TENON_OF_DRESSED_2(divide_floor)

template <class T>
TENON_HOST_DEVICE inline T log_add_exp(T a, T b) {
  if (a == b && a - a != T(0)) return a;  // both the same infinity. NOLINT(misc-redundant-expression)
  const T high = a > b ? a : b;
  const T gap = a > b ? b - a : a - b;
  return high + std::log1p(std::exp(gap));
}
TENON_OF_DRESSED_2(log_add_exp)

template <class T>
TENON_HOST_DEVICE inline bool is_negative_zero(T x) {
  if constexpr (std::numeric_limits<T>::is_integer) {
    return false;
  } else {
    return T(1) / x < T(0);
  }
}

/// Giles' polynomial start, then two Newton steps: full precision in double.
template <class T>
TENON_HOST_DEVICE inline T erfinv(T x) {
  if (!(x > T(-1) && x < T(1))) {
    if (x == T(1)) return std::numeric_limits<T>::infinity();
    if (x == T(-1)) return -std::numeric_limits<T>::infinity();
    return std::numeric_limits<T>::quiet_NaN();
  }
  T w = -std::log((T(1) - x) * (T(1) + x));
  T y;
  if (w < T(5)) {
    w -= T(2.5);
    y = T(2.81022636e-08);
    y = T(3.43273939e-07) + y * w;
    y = T(-3.5233877e-06) + y * w;
    y = T(-4.39150654e-06) + y * w;
    y = T(0.00021858087) + y * w;
    y = T(-0.00125372503) + y * w;
    y = T(-0.00417768164) + y * w;
    y = T(0.246640727) + y * w;
    y = T(1.50140941) + y * w;
  } else {
    w = std::sqrt(w) - T(3);
    y = T(-0.000200214257);
    y = T(0.000100950558) + y * w;
    y = T(0.00134934322) + y * w;
    y = T(-0.00367342844) + y * w;
    y = T(0.00573950773) + y * w;
    y = T(-0.0076224613) + y * w;
    y = T(0.00943887047) + y * w;
    y = T(1.00167406) + y * w;
    y = T(2.83297682) + y * w;
  }
  y *= x;
  for (int step = 0; step < 2; ++step) {
    const T error = std::erf(y) - x;
    y -= error / (T(1.128379167095512574) * std::exp(-(y * y)));
  }
  return y;
}
TENON_OF_DRESSED_1(erfinv)

/// The n-th derivative of digamma, n >= 1: (-1)^(n+1) n! zeta(n+1, x). Recurrence up to 10, then Euler and Maclaurin's
/// series; at the poles it is infinite, with the sign of (-1)^(n+1).
template <class T>
TENON_HOST_DEVICE inline T polygamma(T n, T x) {
  if (x - x != T(0)) return x > T(0) ? T(0) : std::numeric_limits<T>::quiet_NaN();  // infinities. NOLINT
  const T s = n + T(1);
  T sum = T(0);
  if (x <= T(0) && x == std::floor(x)) {
    sum = std::numeric_limits<T>::infinity();
    x = T(10);
  }
  while (x < T(10)) {
    sum += std::pow(x, -s);
    x += T(1);
  }
  const T power = std::pow(x, -s);
  sum += x * power / n + T(0.5) * power;
  constexpr double kBernoulli[] = {1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160};  // B(2k) / (2k)!
  T term = s * power / x;
  for (int k = 0; k < 5; ++k) {
    sum += T(kBernoulli[k]) * term;
    term *= (s + T(2 * k + 1)) * (s + T(2 * k + 2)) / (x * x);
  }
  const T factorial = std::tgamma(s);
  return std::fmod(n, T(2)) == T(0) ? -factorial * sum : factorial * sum;
}
TENON_OF_DRESSED_2(polygamma)

/// Recurrence up to 10, then the asymptotic series; reflection below zero. The pole at zero has its side's sign, as in
/// PyTorch; the others have none.
template <class T>
TENON_HOST_DEVICE inline T digamma(T x) {
  T result = T(0);
  if (x == T(0)) return std::copysign(std::numeric_limits<T>::infinity(), -x);
  if (x < T(0)) {
    if (x == std::floor(x)) return std::numeric_limits<T>::quiet_NaN();
    const T angle = T(3.14159265358979324) * (x - std::trunc(x));  // of the whole x its digits would be lost
    result = -T(3.14159265358979324) / std::tan(angle);
    x = T(1) - x;
  }
  while (x < T(10)) {
    result -= T(1) / x;
    x += T(1);
  }
  const T inverse = T(1) / x;
  const T square = inverse * inverse;
  result +=
      std::log(x) - T(0.5) * inverse -
      square * (T(1.0 / 12) -
                square * (T(1.0 / 120) - square * (T(1.0 / 252) - square * (T(1.0 / 240) - square * T(1.0 / 132)))));
  return result;
}
TENON_OF_DRESSED_1(digamma)

#undef TENON_OF_DRESSED_1
#undef TENON_OF_DRESSED_2
