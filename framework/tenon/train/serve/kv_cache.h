// Where a request keeps the keys and values of its symbols, so that each further symbol costs one position of work.
//
//   contiguous   room for as many positions as a request may ever have, taken at its beginning
//   growing      exactly what there is: each symbol copies a layer into a block that is one position longer
//   paged        pages of a few positions, taken as they are needed and read by attention where they are
//                (Kwon et al., "Efficient memory management for large language model serving with PagedAttention",
//                2023)
#pragma once

#include <tenon/core/export.h>
#include <tenon/tensor/tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::train {

enum class CacheKind { kContiguous, kGrowing, kPaged };
/// "contiguous", "growing", "paged".
TENON_API std::vector<std::string> cache_kinds();
/// Throws Error for an unknown name.
TENON_API CacheKind cache_kind(std::string_view name);

/// What a model keeps of one request. A position has keys and values (heads, depth) in each layer.
struct CacheShape {
  std::int64_t layers = 0, heads = 0, depth = 0;
  std::int64_t positions = 0;       ///< the most of a request
  std::int64_t page_positions = 0;  ///< of a page, with kPaged
  std::int64_t element_bytes = 4;

  /// Of one position in all layers.
  std::int64_t position_bytes() const { return 2 * layers * heads * depth * element_bytes; }
};
/// What a cache of that kind has reserved when it holds `length` positions.
TENON_API std::int64_t reserved_bytes(CacheKind kind, const CacheShape& shape, std::int64_t length);

/// Of one layer, (length, heads, depth) each, dense.
struct KeysValues {
  Tensor keys, values;
};

/// Of one request. Its memory has the purpose "kv_cache".
class TENON_EXPORT KvCache {
 public:
  KvCache() = default;
  virtual ~KvCache() = default;
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  /// Adds positions to a layer; what it has then, valid until its next change. Throws OutOfMemory, and has not changed
  /// then.
  virtual KeysValues append(std::int64_t layer, const KeysValues& more) = 0;
  /// The same, and attention to it: of queries (T, heads, depth) of the positions that are added, each sees itself and
  /// what is before it. Gives (T, heads, depth).
  virtual Tensor attend(std::int64_t layer, const Tensor& queries, const KeysValues& more);
  /// Forgets what came after the first `length` positions, in every layer.
  virtual void rewind(std::int64_t length) = 0;
};
TENON_API std::unique_ptr<KvCache> make_cache(CacheKind kind, const CacheShape& shape);

/// Symbols of several requests in one row after the other: linear layers see all of them at once, attention each
/// request by itself.
struct PackedSymbols {
  struct Span {
    KvCache* cache;  ///< of a request: empty where it has more than one symbol here
    std::int64_t begin, count;
  };
  Tensor symbols;    ///< (T), int64
  Tensor positions;  ///< (T), int64: where each stands in its request
  Tensor last;       ///< (requests), int64: the rows of the spans' last symbols
  std::vector<Span> spans;
};

/// Attention of each request to what it has in its cache, to which its keys and values are added: queries (T, heads,
/// depth), keys and values (T, heads of the cache, depth) -> (T, heads * depth).
TENON_API Tensor attend(const PackedSymbols& packed, std::int64_t layer, const Tensor& queries, const KeysValues& more);

}  // namespace tenon::train
