// Methods of Tensor that the rows of kernel/rows declare; included by tensor.h inside the class.

#define TENON_UNARY(Row, name, ...) \
  TENON_API Tensor name() const;    \
  TENON_API Tensor& name##_() const;
#define TENON_UNARY_WITH(Row, name, saves, integers, count, parameters, ...) \
  TENON_API Tensor name(TENON_DECLARED_##count parameters) const;            \
  TENON_API Tensor& name##_(TENON_DECLARED_##count parameters) const;
#include <tenon/kernel/rows/unary.inl>

#define TENON_METHOD_OF_TWO(Row, name, ...)             \
  TENON_API Tensor name(const Tensor& other) const;     \
  TENON_API Tensor name(const Scalar& other) const;     \
  TENON_API Tensor& name##_(const Tensor& other) const; \
  TENON_API Tensor& name##_(const Scalar& other) const;
#define TENON_BINARY TENON_METHOD_OF_TWO
#include <tenon/kernel/rows/binary.inl>
#define TENON_COMPARISON TENON_METHOD_OF_TWO
#define TENON_BITWISE TENON_METHOD_OF_TWO
#define TENON_PREDICATE(Row, name, ...) TENON_API Tensor name() const;
#include <tenon/kernel/rows/relations.inl>
#undef TENON_METHOD_OF_TWO
