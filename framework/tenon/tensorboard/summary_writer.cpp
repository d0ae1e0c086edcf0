// One event file for each folder that something was added to.
#include <tenon/core/error.h>
#include <tenon/core/process/host_name.h>
#include <tenon/ops/all_ops.h>
#include <tenon/tensorboard/event_file.h>
#include <tenon/tensorboard/image.h>
#include <tenon/tensorboard/messages.h>
#include <tenon/tensorboard/summary_writer.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <mutex>

namespace tenon {

struct SummaryWriter::Files {
  using Clock = std::chrono::steady_clock;
  struct File {
    explicit File(const std::string& folder, const std::string& suffix) : events(folder, suffix) {}
    tensorboard::EventFile events;
    Clock::time_point last_flush = Clock::now();
  };
  std::mutex mutex;
  std::map<std::string, File> by_folder;
};

namespace {

std::string default_folder(const std::string& comment) {
  return fmt::format("runs/{:%b%d_%H-%M-%S}_{}{}", fmt::localtime(std::time(nullptr)), host_name(), comment);
}

std::vector<double> values_of(const Tensor& tensor) {
  const Tensor flat = tensor.detach().to(kCPU).to(Dtype::kFloat64).contiguous();
  const double* const first = flat.data_ptr<double>();
  return {first, first + flat.numel()};
}

}  // namespace

SummaryWriter::SummaryWriter(std::string log_dir, SummaryWriterOptions options)
    : log_dir_(log_dir.empty() ? default_folder(options.comment) : std::move(log_dir)),
      options_(std::move(options)),
      files_(std::make_unique<Files>()) {
  tensorboard::EventFile& own =
      files_->by_folder.try_emplace(log_dir_, log_dir_, options_.filename_suffix).first->second.events;
  if (options_.purge_step) {
    own.add_restart(*options_.purge_step);
    own.flush();
  }
}

SummaryWriter::~SummaryWriter() = default;  // files flush what they can

void SummaryWriter::add(const std::string& folder, std::string_view summary, std::optional<std::int64_t> step,
                        std::optional<double> walltime) {
  const std::lock_guard lock(files_->mutex);
  Files::File& file = files_->by_folder.try_emplace(folder, folder, options_.filename_suffix).first->second;
  file.events.add(summary, step.value_or(0), walltime);
  const std::chrono::duration<double> waited = Files::Clock::now() - file.last_flush;
  if (file.events.waiting() < options_.max_queue && waited.count() < options_.flush_secs) return;
  file.last_flush = Files::Clock::now();
  file.events.flush();
}

void SummaryWriter::add_scalar(std::string_view tag, double value, std::optional<std::int64_t> global_step,
                               std::optional<double> walltime) {
  add(log_dir_, tensorboard::scalar_summary(tag, value), global_step, walltime);
}

void SummaryWriter::add_scalar(std::string_view tag, const Tensor& value, std::optional<std::int64_t> global_step,
                               std::optional<double> walltime) {
  if (value.numel() != 1)
    throw Error(
        fmt::format("a scalar has 1 element, got a tensor of shape {} for '{}'", to_string(value.sizes()), tag));
  add_scalar(tag, values_of(value).front(), global_step, walltime);
}

void SummaryWriter::add_scalars(std::string_view main_tag, const TaggedValues& values,
                                std::optional<std::int64_t> global_step, std::optional<double> walltime) {
  std::string main_folder(main_tag);
  std::ranges::replace(main_folder, '/', '_');
  const double now = walltime ? *walltime : tensorboard::wall_time_now();
  for (const auto& [tag, value] : values) {
    add(fmt::format("{}/{}_{}", log_dir_, main_folder, tag), tensorboard::scalar_summary(main_tag, value), global_step,
        now);
  }
}

void SummaryWriter::add_scalar_event(const TaggedValues& values, std::optional<std::int64_t> global_step,
                                     std::optional<double> walltime) {
  std::string summary;
  for (const auto& [tag, value] : values) summary += tensorboard::scalar_summary(tag, value);
  add(log_dir_, summary, global_step, walltime);
}

void SummaryWriter::add_histogram(std::string_view tag, const Tensor& values, std::optional<std::int64_t> global_step,
                                  const HistogramBins& bins, std::optional<double> walltime) {
  add(log_dir_, tensorboard::histogram_summary(tag, tensorboard::histogram_of(values_of(values), bins)), global_step,
      walltime);
}

void SummaryWriter::add_histogram_raw(std::string_view tag, double min, double max, std::int64_t num, double sum,
                                      double sum_squares, const std::vector<double>& bucket_limits,
                                      const std::vector<std::int64_t>& bucket_counts,
                                      std::optional<std::int64_t> global_step, std::optional<double> walltime) {
  if (bucket_limits.size() != bucket_counts.size()) {
    throw Error(fmt::format("a histogram has a count for each limit, got {} limits and {} counts for '{}'",
                            bucket_limits.size(), bucket_counts.size(), tag));
  }
  const tensorboard::Histogram histogram{.min = min,
                                         .max = max,
                                         .count = static_cast<double>(num),
                                         .sum = sum,
                                         .sum_of_squares = sum_squares,
                                         .limits = bucket_limits,
                                         .counts = {bucket_counts.begin(), bucket_counts.end()}};
  add(log_dir_, tensorboard::histogram_summary(tag, histogram), global_step, walltime);
}

void SummaryWriter::add_image(std::string_view tag, const Tensor& img_tensor, std::optional<std::int64_t> global_step,
                              std::optional<double> walltime, std::string_view dataformats) {
  add(log_dir_, tensorboard::image_summary(tag, tensorboard::encode_image(img_tensor, dataformats)), global_step,
      walltime);
}

void SummaryWriter::add_images(std::string_view tag, const Tensor& img_tensor, std::optional<std::int64_t> global_step,
                               std::optional<double> walltime, std::string_view dataformats) {
  add_image(tag, img_tensor, global_step, walltime, dataformats);
}

void SummaryWriter::add_text(std::string_view tag, std::string_view text_string,
                             std::optional<std::int64_t> global_step, std::optional<double> walltime) {
  add(log_dir_, tensorboard::text_summary(tag, text_string), global_step, walltime);
}

void SummaryWriter::add_hparams(const HParams& hparam_dict, const TaggedValues& metric_dict, std::string_view run_name,
                                std::optional<std::int64_t> global_step, bool succeeded) {
  std::string folder = log_dir_;
  if (run_name != ".")
    folder += run_name.empty() ? fmt::format("/{:.6f}", tensorboard::wall_time_now()) : fmt::format("/{}", run_name);
  std::vector<std::string> metrics;
  for (const auto& [tag, value] : metric_dict) metrics.push_back(tag);
  add(folder, tensorboard::experiment_summary(hparam_dict, metrics), global_step, {});
  add(folder, tensorboard::session_start_summary(hparam_dict), global_step, {});
  for (const auto& [tag, value] : metric_dict) add(folder, tensorboard::scalar_summary(tag, value), global_step, {});
  const auto status = succeeded ? tensorboard::SessionStatus::kSuccess : tensorboard::SessionStatus::kFailure;
  add(folder, tensorboard::session_end_summary(status), global_step, {});
}

void SummaryWriter::add_summary(std::string_view summary, std::optional<std::int64_t> global_step,
                                std::optional<double> walltime) {
  add(log_dir_, summary, global_step, walltime);
}

void SummaryWriter::flush() {
  const std::lock_guard lock(files_->mutex);
  for (auto& [folder, file] : files_->by_folder) {
    file.last_flush = Files::Clock::now();
    file.events.flush();
  }
}

void SummaryWriter::close() {
  flush();
  const std::lock_guard lock(files_->mutex);
  files_->by_folder.clear();
}

}  // namespace tenon
