// oneDNN's side of a convolution: for each shape the primitives, the layouts they want, and the room they need.
//
// A plan covers a slice: some pictures, or some output channels of all pictures. Layouts are oneDNN's choice; where
// ours differ, a Side knows how to move between them. Every scratchpad is the user's (ours), so that every byte comes
// from the allocator.
#pragma once

#include <dnnl.hpp>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <tuple>

#include "kernels/nn/channel_blocks.h"
#include "kernels/nn/convolution.h"

namespace tenon::cpu {

using i64 = std::int64_t;
using dnnl::memory;

enum class ConvKind { kForward, kBackwardInput, kBackwardWeight };
/// Along which dimension plans are slices. By channels is for weight gradients of one group.
enum class Divided { kByPicture, kByChannel };

const dnnl::engine& onednn_engine();
/// The calling thread's.
dnnl::stream& onednn_stream();

/// The calling thread's memory object of `description`, which lives as long as the program, told where its bytes lie:
/// the same one at every call, so that a convolution which has run before takes nothing from the heap for its operands.
dnnl_exec_arg_t operand(int argument, const memory::desc& description, void* data);
/// Runs a primitive on the calling thread's stream. Throws dnnl::error.
void execute(const dnnl::primitive& primitive, std::initializer_list<dnnl_exec_arg_t> operands);

/// Which convolution: everything that its plans depend on.
struct ConvKey {
  ConvKind kind;
  ConvShape s;
  Divided divided;
  i64 slice;        ///< pictures or output channels of one plan
  int omp_threads;  ///< that oneDNN may use inside a plan
  int move_parts;   ///< in which weights are moved between layouts
  bool bias, x_last, w_last, y_last;
  bool is_bfloat16;  ///< all operands are; gradients of weights are summed in float32 before

  memory::data_type type() const { return is_bfloat16 ? memory::data_type::bf16 : memory::data_type::f32; }
  std::size_t element_bytes() const { return is_bfloat16 ? 2 : sizeof(float); }
  auto tie() const {
    auto list = [](const i64* v) { return std::tie(v[0], v[1], v[2]); };
    return std::tuple_cat(std::tie(kind, divided, slice, omp_threads, move_parts, bias, x_last, w_last, y_last,
                                   is_bfloat16, s.spatial, s.batch, s.in_channels, s.out_channels, s.groups),
                          list(s.in), list(s.out), list(s.kernel), list(s.stride), list(s.padding), list(s.dilation));
  }
  bool operator<(const ConvKey& other) const { return tie() < other.tie(); }
};

/// What oneDNN is told of a convolution's sizes. A window's dilation is 0 where it has none.
struct ConvDims {
  memory::dims x, y, w, stride, dilation, low, high;  ///< low, high: padding at both ends
};
/// Of so many pictures and output channels; space begins at dimension `first` of the three.
ConvDims conv_dims(const ConvShape& s, int first, i64 pictures, i64 out_channels);

/// One operand: how it lies with us, how oneDNN wants it, and the way between.
struct Side {
  memory::desc plain, wanted;
  dnnl::reorder reorder;
  bool into_onednn = true;  ///< or back
  bool differs = false;
  std::size_t bytes = 0;  ///< in scratch, per slice; 0 where the layouts agree

  void connect(const memory::desc& ours, const memory::desc& theirs, bool into);
  /// Prepares move_in_parts, in `parts` parts of the first dimension, if both layouts can be cut so.
  void divide(int parts);
  /// Moves one slice, in the direction that connect() was given; `work` has scratchpad_bytes.
  void move(char* from, char* to, char* work) const;
  /// The same over the thread pool, if divide() could; on the calling thread otherwise.
  void move_in_parts(char* from, char* to, char* work) const;
  static std::size_t align(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

  memory::desc scratchpad;
  std::size_t scratchpad_bytes = 0;

 private:
  void move_blocks(char* from, char* to, i64 first_picture, i64 count) const;

  std::optional<ChannelBlocks> blocks_;  // where this is what the layouts differ in, our own transpositions move
  int parts_ = 1;
  memory::desc part_plain_, part_wanted_;
  std::size_t plain_step_ = 0, wanted_step_ = 0;  // bytes from one part to the next
  dnnl::reorder part_reorder_;
};

/// A convolution of one slice.
struct ConvPlan {
  Side x, w, y;
  memory::desc bias;
  dnnl::primitive convolution;
  memory::desc scratchpad;
  std::size_t scratchpad_bytes = 0;
  bool leaves_out = false;  ///< elements of the weights' gradient meet padding alone: oneDNN reads rooms it never wrote

  /// Before the gradient is computed.
  void clear_left_out(char* gradient, char* work) const;
  std::size_t slice_bytes() const { return x.bytes + y.bytes + work_bytes(); }
  std::size_t work_bytes() const {
    return std::max({scratchpad_bytes, x.scratchpad_bytes, y.scratchpad_bytes, w.scratchpad_bytes});
  }
};

struct ConvPlans {
  ConvPlan main;
  std::optional<ConvPlan> tail;  ///< the last slice where it is smaller

  const ConvPlan& of(i64 piece, i64 pieces) const { return tail && piece == pieces - 1 ? *tail : main; }
  std::size_t slice_bytes() const { return std::max(main.slice_bytes(), tail ? tail->slice_bytes() : 0); }
};

/// Built once per key and never dropped: a program has few shapes. Null where oneDNN has no implementation.
const ConvPlans* plans_for(const ConvKey& key);

}  // namespace tenon::cpu
