// The three ways to keep keys and values.
#include <tenon/core/error.h>
#include <tenon/core/scope/scope.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/nn/attention.h>
#include <tenon/ops/nn/paged_attention.h>
#include <tenon/ops/ops.h>
#include <tenon/train/serve/kv_cache.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tenon::train {
namespace {

/// What is allocated while it lives belongs to a cache.
struct CacheMemory {
  PurposeGuard purpose{Purpose::kKvCache};
};

Tensor rows(const Tensor& like, std::int64_t count) {
  const CacheMemory scope;
  return tenon::empty({count, like.size(1), like.size(2)}, like.options());
}

class ContiguousCache final : public KvCache {
 public:
  explicit ContiguousCache(const CacheShape& shape) : shape_(shape), layers_(static_cast<std::size_t>(shape.layers)) {}

  KeysValues append(std::int64_t layer, const KeysValues& more) override {
    Layer& kept = layers_[static_cast<std::size_t>(layer)];
    if (!kept.all.values.defined()) {
      kept.all.keys = rows(more.keys, shape_.positions);
      kept.all.values = rows(more.values, shape_.positions);
    }
    const std::int64_t count = more.keys.size(0);
    kept.all.keys.narrow(0, kept.length, count).copy_(more.keys);
    kept.all.values.narrow(0, kept.length, count).copy_(more.values);
    kept.length += count;
    return {kept.all.keys.narrow(0, 0, kept.length), kept.all.values.narrow(0, 0, kept.length)};
  }

  void rewind(std::int64_t length) override {
    for (Layer& layer : layers_) layer.length = std::min(layer.length, length);
  }

 private:
  struct Layer {
    KeysValues all;  ///< (positions, heads, depth)
    std::int64_t length = 0;
  };
  CacheShape shape_;
  std::vector<Layer> layers_;
};

class GrowingCache final : public KvCache {
 public:
  explicit GrowingCache(const CacheShape& shape) : layers_(static_cast<std::size_t>(shape.layers)) {}

  KeysValues append(std::int64_t layer, const KeysValues& more) override {
    KeysValues& kept = layers_[static_cast<std::size_t>(layer)];
    const CacheMemory scope;
    const auto longer = [](const Tensor& before, const Tensor& after) {
      return before.defined() ? tenon::cat({before, after}, 0) : after.clone(MemoryFormat::Contiguous);
    };
    const Tensor keys = longer(kept.keys, more.keys), values = longer(kept.values, more.values);
    kept = {keys, values};
    return kept;
  }

  void rewind(std::int64_t length) override {
    for (KeysValues& kept : layers_) {
      if (!kept.keys.defined() || kept.keys.size(0) <= length) continue;
      kept = length == 0 ? KeysValues() : KeysValues{kept.keys.narrow(0, 0, length), kept.values.narrow(0, 0, length)};
    }
  }

 private:
  std::vector<KeysValues> layers_;
};

/// A page holds some positions of every layer: (layers, 2, page, heads, depth), keys before values.
class PagedCache final : public KvCache {
 public:
  explicit PagedCache(const CacheShape& shape) : shape_(shape), lengths_(static_cast<std::size_t>(shape.layers), 0) {}

  KeysValues append(std::int64_t layer, const KeysValues& more) override {
    const std::int64_t length = add(layer, more);
    return {gathered(layer, 0, length), gathered(layer, 1, length)};
  }

  Tensor attend(std::int64_t layer, const Tensor& queries, const KeysValues& more) override {
    const std::int64_t length = add(layer, more);
    std::vector<Tensor> pages;
    for (std::int64_t begin = 0; begin < length; begin += shape_.page_positions)
      pages.push_back(pages_[pages.size()].select(0, layer));
    return tenon::paged_attention(queries, pages, length);
  }

  void rewind(std::int64_t length) override {
    for (std::int64_t& each : lengths_) each = std::min(each, length);
    const std::int64_t page = shape_.page_positions;
    pages_.resize(std::min(pages_.size(), static_cast<std::size_t>((length + page - 1) / page)));
  }

 private:
  void take_pages(std::int64_t count, const Tensor& like) {
    const CacheMemory memory;
    const scopes::Scope owner(scopes::Kind::kModule, "kv_cache");  // a page is of all layers
    while (static_cast<std::int64_t>(pages_.size()) < count)
      pages_.push_back(
          tenon::empty({shape_.layers, 2, shape_.page_positions, shape_.heads, shape_.depth}, like.options()));
  }

  /// Puts positions into a layer's pages; how many it has then.
  std::int64_t add(std::int64_t layer, const KeysValues& more) {
    std::int64_t& length = lengths_[static_cast<std::size_t>(layer)];
    const std::int64_t count = more.keys.size(0), page = shape_.page_positions;
    take_pages((length + count + page - 1) / page, more.keys);
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t at = length + done, inside = at % page, fitting = std::min(page - inside, count - done);
      const Tensor both = pages_[static_cast<std::size_t>(at / page)].select(0, layer);
      both.select(0, 0).narrow(0, inside, fitting).copy_(more.keys.narrow(0, done, fitting));
      both.select(0, 1).narrow(0, inside, fitting).copy_(more.values.narrow(0, done, fitting));
      done += fitting;
    }
    return length += count;
  }

  /// Copied together.
  Tensor gathered(std::int64_t layer, std::int64_t which, std::int64_t length) const {
    const std::int64_t page = shape_.page_positions;
    std::vector<Tensor> parts;
    for (std::int64_t begin = 0; begin < length; begin += page)
      parts.push_back(pages_[static_cast<std::size_t>(begin / page)].select(0, layer).select(0, which).narrow(
          0, 0, std::min(page, length - begin)));
    return tenon::cat(parts, 0);
  }

  CacheShape shape_;
  std::vector<Tensor> pages_;  ///< the block table
  std::vector<std::int64_t> lengths_;
};

constexpr const char* kKinds[] = {"contiguous", "growing", "paged"};

}  // namespace

std::vector<std::string> cache_kinds() { return {std::begin(kKinds), std::end(kKinds)}; }

CacheKind cache_kind(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kKinds); ++i)
    if (name == kKinds[i]) return static_cast<CacheKind>(i);
  throw Error(fmt::format("no cache '{}'; there are {}", name, fmt::join(kKinds, ", ")));
}

std::int64_t reserved_bytes(CacheKind kind, const CacheShape& shape, std::int64_t length) {
  const std::int64_t page = shape.page_positions;
  switch (kind) {
    case CacheKind::kContiguous:
      return shape.positions * shape.position_bytes();
    case CacheKind::kGrowing:
      return length * shape.position_bytes();
    case CacheKind::kPaged:
      return (length + page - 1) / page * page * shape.position_bytes();
  }
  return 0;
}

std::unique_ptr<KvCache> make_cache(CacheKind kind, const CacheShape& shape) {
  if (kind == CacheKind::kContiguous) return std::make_unique<ContiguousCache>(shape);
  if (kind == CacheKind::kGrowing) return std::make_unique<GrowingCache>(shape);
  return std::make_unique<PagedCache>(shape);
}

Tensor KvCache::attend(std::int64_t layer, const Tensor& queries, const KeysValues& more) {
  const std::int64_t count = queries.size(0), heads = queries.size(1), depth = queries.size(2);
  const KeysValues all = append(layer, more);
  const std::int64_t shared = all.keys.size(1);
  // Heads that share a key stand in a dimension of their own, over which keys and values broadcast.
  const Tensor asked = queries.view({count, shared, heads / shared, depth}).permute({1, 2, 0, 3});
  const auto seen = [](const Tensor& t) { return t.permute({1, 0, 2}).unsqueeze(1); };
  const Tensor y = tenon::scaled_dot_product_attention(asked, seen(all.keys), seen(all.values), std::nullopt, 0.0,
                                                       /*is_causal=*/count > 1);
  return y.permute({2, 0, 1, 3}).reshape({count, heads, depth});
}

Tensor attend(const PackedSymbols& packed, std::int64_t layer, const Tensor& queries, const KeysValues& more) {
  std::vector<Tensor> parts;
  for (const PackedSymbols::Span& span : packed.spans) {
    const auto own = [&](const Tensor& t) { return t.narrow(0, span.begin, span.count); };
    parts.push_back(span.cache->attend(layer, own(queries), {own(more.keys), own(more.values)}).flatten(1));
  }
  return tenon::cat(parts, 0);
}

}  // namespace tenon::train
