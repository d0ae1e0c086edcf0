// SummaryWriter: what a program tells TensorBoard. Names, defaults and folders are those of torch.utils.tensorboard.
//
//   tenon::SummaryWriter writer("runs/lenet");
//   writer.add_scalar("Memory/Allocated", tenon::memory_allocated(), step);
//
// and then: tensorboard --logdir runs
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/owned.h>
#include <tenon/tensor/tensor.h>
#include <tenon/tensorboard/histogram.h>
#include <tenon/tensorboard/hparam.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon {

struct SummaryWriterOptions {
  std::string comment;                     ///< behind the name of a folder that is not given
  std::optional<std::int64_t> purge_step;  ///< what earlier files say of this step and later ones is not shown
  std::size_t max_queue = 10;              ///< events that may wait to be written
  double flush_secs = 120;                 ///< how long they may: an event that comes later has them written
  std::string filename_suffix;
};

/// Values by name, as of several curves in one picture.
using TaggedValues = std::vector<std::pair<std::string, double>>;

/// Thread-safe. What was added before a flush survives a kill of the process, and a file is readable up to there. Every
/// function that adds throws Error where a file cannot be written. `global_step` is 0 where none is given, `walltime`
/// (seconds since the epoch) now.
class TENON_EXPORT SummaryWriter {
 public:
  /// Writes to `log_dir`, which is made where it is not there; empty: runs/DATE_HOST and the comment. Throws Error
  /// where no file can be made.
  TENON_API explicit SummaryWriter(std::string log_dir = {}, SummaryWriterOptions options = {});
  /// close(), but for errors, which nobody is left to be told.
  TENON_API ~SummaryWriter();
  SummaryWriter(const SummaryWriter&) = delete;
  SummaryWriter& operator=(const SummaryWriter&) = delete;

  /// TensorBoard keeps 32 bits of it.
  TENON_API void add_scalar(std::string_view tag, double value, std::optional<std::int64_t> global_step = {},
                            std::optional<double> walltime = {});
  /// The only element of a tensor. Throws Error where it has several.
  TENON_API void add_scalar(std::string_view tag, const Tensor& value, std::optional<std::int64_t> global_step = {},
                            std::optional<double> walltime = {});
  /// Several curves in one picture: each gets a run of its own, the folder LOG_DIR/MAIN_TAG_NAME.
  TENON_API void add_scalars(std::string_view main_tag, const TaggedValues& values,
                             std::optional<std::int64_t> global_step = {}, std::optional<double> walltime = {});
  /// Several scalars of one step as one event, which is written whole or not at all.
  TENON_API void add_scalar_event(const TaggedValues& values, std::optional<std::int64_t> global_step = {},
                                  std::optional<double> walltime = {});

  /// How the values of a tensor of any shape are spread. Throws Error for an empty one, and where no value lies within
  /// the bins.
  TENON_API void add_histogram(std::string_view tag, const Tensor& values, std::optional<std::int64_t> global_step = {},
                               const HistogramBins& bins = "tensorflow", std::optional<double> walltime = {});
  /// A histogram that is already counted: bucket i reaches up to bucket_limits[i]. Throws Error where there are not as
  /// many limits as counts.
  TENON_API void add_histogram_raw(std::string_view tag, double min, double max, std::int64_t num, double sum,
                                   double sum_squares, const std::vector<double>& bucket_limits,
                                   const std::vector<std::int64_t>& bucket_counts,
                                   std::optional<std::int64_t> global_step = {}, std::optional<double> walltime = {});

  /// A picture. Bytes are taken as they are, other dtypes as values from 0 to 1, cut off outside. `dataformats` names
  /// the dimensions in their order: "CHW", "HWC", "HW"; 1, 3 or 4 channels. Throws Error where the shape does not fit.
  TENON_API void add_image(std::string_view tag, const Tensor& img_tensor, std::optional<std::int64_t> global_step = {},
                           std::optional<double> walltime = {}, std::string_view dataformats = "CHW");
  /// So a batch of them, 8 a row: "NCHW", "NHWC" …
  TENON_API void add_images(std::string_view tag, const Tensor& img_tensor,
                            std::optional<std::int64_t> global_step = {}, std::optional<double> walltime = {},
                            std::string_view dataformats = "NCHW");

  /// Shown as Markdown.
  TENON_API void add_text(std::string_view tag, std::string_view text_string,
                          std::optional<std::int64_t> global_step = {}, std::optional<double> walltime = {});

  /// What a run was made with, and what came of it, for the table of hyperparameters: in the folder LOG_DIR/RUN_NAME,
  /// which is named by the time where no name is given; "." is the writer's own. `succeeded` is what the table says of
  /// the run.
  TENON_API void add_hparams(const HParams& hparam_dict, const TaggedValues& metric_dict,
                             std::string_view run_name = {}, std::optional<std::int64_t> global_step = {},
                             bool succeeded = true);

  /// Values that are encoded already, as messages.h makes them.
  TENON_API void add_summary(std::string_view summary, std::optional<std::int64_t> global_step = {},
                             std::optional<double> walltime = {});

  /// Hands what waits to the system. Throws Error where that fails.
  TENON_API void flush();
  /// flush(), and closes the files; what is added later goes to new ones. Throws Error where flushing fails.
  TENON_API void close();
  /// The folder.
  const std::string& log_dir() const { return log_dir_; }
  const std::string& get_logdir() const { return log_dir_; }

 private:
  struct Files;
  void add(const std::string& folder, std::string_view summary, std::optional<std::int64_t> step,
           std::optional<double> walltime);

  std::string log_dir_;
  SummaryWriterOptions options_;
  Owned<Files> files_;
};

}  // namespace tenon
