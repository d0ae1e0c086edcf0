// Embeddings as modules.
#include <tenon/nn/modules/embedding.h>

#include <tenon/nn/functional/embedding.h>
#include <tenon/nn/init.h>
#include <tenon/nn/parameter.h>
#include <tenon/ops/ops.h>

#include <ostream>
#include <utility>

namespace tenon::nn {

namespace F = functional;

namespace {

/// Both kinds: the index counted from the front, checked.
template <class Options>
void settle_padding(Options& options) {
  if (!options.padding_idx()) return;
  const std::int64_t rows = options.num_embeddings();
  if (*options.padding_idx() >= rows || *options.padding_idx() < -rows) {
    throw Error("Padding_idx must be within num_embeddings");
  }
  if (*options.padding_idx() < 0) options.padding_idx(rows + *options.padding_idx());
}

template <class Options>
void check_weight(const Options& options) {
  const std::vector<std::int64_t> expected{options.num_embeddings(), options.embedding_dim()};
  if (options._weight().sizes().vec() != expected) {
    throw Error("Shape of _weight does not match num_embeddings and embedding_dim");
  }
}

/// The weight that was given becomes the module's own; a copy of the module then makes itself another one.
template <class Options>
Tensor take_weight(Options& options) {
  check_weight(options);
  return std::exchange(options._weight(), Tensor());
}

void draw_weight(Tensor& weight, const std::optional<std::int64_t>& padding_row) {
  init::normal_(weight);
  if (padding_row) init::zeros_(weight.detach().select(0, *padding_row));
}

template <class Module>
void reset_module(Module& module) {
  auto& options = module.options;
  settle_padding(options);
  if (options._weight().defined()) {
    module.weight = module.register_parameter("weight", take_weight(options));
  } else {
    module.weight =
        module.register_parameter("weight", new_parameter({options.num_embeddings(), options.embedding_dim()}));
    module.reset_parameters();
  }
}

}  // namespace

EmbeddingImpl::EmbeddingImpl(EmbeddingOptions given) : options(std::move(given)) { EmbeddingImpl::reset(); }
void EmbeddingImpl::reset() { reset_module(*this); }
void EmbeddingImpl::reset_parameters() { draw_weight(weight, options.padding_idx()); }
void EmbeddingImpl::pretty_print(std::ostream& stream) const {
  stream << "tenon::nn::Embedding(num_embeddings=" << options.num_embeddings()
         << ", embedding_dim=" << options.embedding_dim();
  if (options.padding_idx()) stream << ", padding_idx=" << *options.padding_idx();
  if (options.max_norm()) stream << ", max_norm=" << *options.max_norm();
  if (options.norm_type() != 2) stream << ", norm_type=" << options.norm_type();
  if (options.scale_grad_by_freq()) stream << ", scale_grad_by_freq=" << std::boolalpha << options.scale_grad_by_freq();
  if (options.sparse()) stream << ", sparse=" << std::boolalpha << options.sparse();
  stream << ")";
}
Tensor EmbeddingImpl::forward(const Tensor& indices) {
  const ModuleScope scope(*this);
  return F::embedding(indices, weight,
                      F::EmbeddingFuncOptions()
                          .padding_idx(options.padding_idx())
                          .max_norm(options.max_norm())
                          .norm_type(options.norm_type())
                          .scale_grad_by_freq(options.scale_grad_by_freq()));
}
Embedding Embedding::from_pretrained(const Tensor& embeddings, const EmbeddingFromPretrainedOptions& o) {
  if (embeddings.dim() != 2) throw Error("Embeddings parameter is expected to be 2-dimensional");
  Embedding embedding(EmbeddingOptions(embeddings.size(0), embeddings.size(1))
                          ._weight(embeddings)
                          .padding_idx(o.padding_idx())
                          .max_norm(o.max_norm())
                          .norm_type(o.norm_type())
                          .scale_grad_by_freq(o.scale_grad_by_freq())
                          .sparse(o.sparse()));
  embedding->weight.set_requires_grad(!o.freeze());
  return embedding;
}

EmbeddingBagImpl::EmbeddingBagImpl(EmbeddingBagOptions given) : options(std::move(given)) { EmbeddingBagImpl::reset(); }
void EmbeddingBagImpl::reset() { reset_module(*this); }
void EmbeddingBagImpl::reset_parameters() { draw_weight(weight, options.padding_idx()); }
void EmbeddingBagImpl::pretty_print(std::ostream& stream) const {
  stream << "tenon::nn::EmbeddingBag(num_embeddings=" << options.num_embeddings()
         << ", embedding_dim=" << options.embedding_dim();
  if (options.max_norm()) stream << ", max_norm=" << *options.max_norm();
  if (options.norm_type() != 2) stream << ", norm_type=" << options.norm_type();
  if (options.scale_grad_by_freq()) stream << ", scale_grad_by_freq=" << std::boolalpha << options.scale_grad_by_freq();
  if (options.sparse()) stream << ", sparse=" << std::boolalpha << options.sparse();
  if (!options.mode().is<enumtype::kMean>()) {
    stream << ", mode=" << enumtype::get_enum_name(options.mode());
  }
  if (options.include_last_offset())
    stream << ", include_last_offset=" << std::boolalpha << options.include_last_offset();
  if (options.padding_idx()) stream << ", padding_idx=" << *options.padding_idx();
  stream << ")";
}
Tensor EmbeddingBagImpl::forward(const Tensor& input, const Tensor& offsets, const Tensor& per_sample_weights) {
  const ModuleScope scope(*this);
  return F::embedding_bag(input, weight,
                          F::EmbeddingBagFuncOptions()
                              .offsets(offsets)
                              .max_norm(options.max_norm())
                              .norm_type(options.norm_type())
                              .scale_grad_by_freq(options.scale_grad_by_freq())
                              .mode(options.mode())
                              .per_sample_weights(per_sample_weights)
                              .include_last_offset(options.include_last_offset())
                              .padding_idx(options.padding_idx()));
}
EmbeddingBag EmbeddingBag::from_pretrained(const Tensor& embeddings, const EmbeddingBagFromPretrainedOptions& o) {
  if (embeddings.dim() != 2) throw Error("Embeddings parameter is expected to be 2-dimensional");
  EmbeddingBag bag(EmbeddingBagOptions(embeddings.size(0), embeddings.size(1))
                       ._weight(embeddings)
                       .max_norm(o.max_norm())
                       .norm_type(o.norm_type())
                       .scale_grad_by_freq(o.scale_grad_by_freq())
                       .mode(o.mode())
                       .sparse(o.sparse())
                       .include_last_offset(o.include_last_offset())
                       .padding_idx(o.padding_idx()));
  bag->weight.set_requires_grad(!o.freeze());
  return bag;
}

TENON_DEFAULT_ARGS_OF(EmbeddingBagImpl, {1, AnyValue(Tensor())}, {2, AnyValue(Tensor())})

template class Cloneable<EmbeddingImpl>;
template class Cloneable<EmbeddingBagImpl>;

}  // namespace tenon::nn
