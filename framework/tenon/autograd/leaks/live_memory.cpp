// Recordings, marks and what two of them differ in.
#include <tenon/autograd/leaks/holders.h>
#include <tenon/autograd/leaks/live_memory.h>
#include <tenon/autograd/leaks/site_names.h>

#include <tenon/autograd/node.h>
#include <tenon/autograd/variable.h>
#include <tenon/core/error.h>
#include <tenon/core/text/counted.h>
#include <tenon/core/units.h>
#include <tenon/device/closing.h>
#include <tenon/device/device_state.h>
#include <tenon/memory/history/call_site.h>
#include <tenon/memory/history/history.h>
#include <tenon/tensor/live_tensors.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

namespace tenon::memory {

namespace {

History& history_of(Device device) { return device_state(device).history(); }

std::string signed_bytes(std::int64_t bytes) {
  return (bytes < 0 ? "-" : "+") + format_bytes(static_cast<std::size_t>(std::abs(bytes)));
}

std::string with_label(Purpose purpose, const std::string& label) {
  return std::string(name_of(purpose)) + (label.empty() ? "" : " (" + label + ")");
}

std::size_t page_locked_bytes(const std::vector<LiveBlock>& blocks) {
  std::size_t bytes = 0;
  for (const LiveBlock& block : blocks) bytes += block.page_locked ? block.bytes : 0;
  return bytes;
}

std::string and_more(std::size_t all, std::size_t shown) {
  return all > shown ? fmt::format("  … and {} more\n", all - shown) : std::string();
}

}  // namespace

const std::string& SiteNames::of_block(StackId stack) {
  auto [found, is_new] = blocks_.try_emplace(stack);
  if (is_new) found->second = call_site(history_of(device_).frames(stack));
  return found->second;
}

const std::string& SiteNames::line_of_block(StackId stack) {
  auto [found, is_new] = lines_.try_emplace(stack);
  if (is_new) {
    const std::vector<StackFrame> frames = history_of(device_).frames(stack);
    const std::vector<std::size_t> own = own_frames(frames);
    found->second = own.empty() ? call_site({}) : call_site(std::span(&frames[own.front()], 1));
  }
  return found->second;
}

const std::string& SiteNames::of_tensor(StackId stack) {
  auto [found, is_new] = tensors_.try_emplace(stack);
  if (is_new) found->second = call_site(listed_frames(stack));
  return found->second;
}

LiveRecording::LiveRecording(Device device, bool lists_tensors)
    : device_(device_state(device).device()),
      lists_tensors_(lists_tensors),
      closing_(std::make_unique<ClosingHandle>([this] { drop_blocks(); })) {
  history_of(device_).keep_live();
  if (lists_tensors_) list_tensors();
}

LiveRecording::~LiveRecording() {
  closing_.reset();
  drop_blocks();
  if (lists_tensors_) stop_listing_tensors();
}

void LiveRecording::drop_blocks() noexcept {
  if (std::exchange(keeps_blocks_, false)) history_of(device_).drop_live();
}

std::vector<LiveTensor> live_tensors() {
  SiteNames names(kCPU);
  std::vector<LiveTensor> tensors;
  const Standstill standstill;
  for (const ListedTensor& listed : listed_tensors()) {
    if (listed.is_older) continue;
    const TensorImpl& impl = *listed.tensor;
    const auto* meta = static_cast<const autograd::AutogradMeta*>(impl.autograd_meta());
    const auto [purpose, label] = autograd::glance([&] {
      const Request& request = impl.storage().block().request;
      return std::pair(request.purpose, request.label);
    });
    const Dims sizes = autograd::sizes_of(impl);
    const auto grad_fn = autograd::kept_node(meta != nullptr ? meta->grad_fn.get() : nullptr);
    tensors.push_back(
        {.sizes = {sizes.begin(), sizes.end()},
         .dtype = impl.dtype(),
         .device = impl.device(),
         .bytes = autograd::numel_of(impl) * size_of(impl.dtype()),
         .storage_bytes = autograd::storage_bytes_of(impl),
         .purpose = purpose,
         .label = label_name(label),
         .page_locked = autograd::glance([&] { return impl.storage().pinned_for() != nullptr; }),
         .requires_grad = meta != nullptr && (autograd::glance([&] { return meta->requires_grad; }) || meta->grad_fn),
         .grad_fn = grad_fn ? grad_fn->name() : "",
         .references = impl.use_count(),
         .made_at = names.of_tensor(listed.made_at)});
  }
  std::ranges::stable_sort(tensors, std::ranges::greater(), &LiveTensor::storage_bytes);
  return tensors;
}

namespace {

/// ", page-locked", ", on simulated:0"; nothing of the host's usual memory.
std::string memory_of(const LiveTensor& tensor) {
  if (tensor.page_locked) return ", page-locked";
  return tensor.device.is_cpu() ? std::string() : ", on " + tensor.device.str();
}

}  // namespace

std::string live_tensors_text(std::size_t most) {
  const Standstill standstill;
  const std::vector<LiveTensor> tensors = live_tensors();
  std::set<const StorageImpl*> storages;
  std::size_t bytes = 0;
  for (const ListedTensor& listed : listed_tensors())
    if (!listed.is_older && storages.insert(&listed.tensor->storage()).second)
      bytes += autograd::storage_bytes_of(*listed.tensor);
  std::string text = fmt::format("{} keep {} in {}\n", counted(tensors.size(), "live tensor"), format_bytes(bytes),
                                 counted(storages.size(), "storage"));
  for (std::size_t i = 0; i < std::min(most, tensors.size()); ++i) {
    const LiveTensor& tensor = tensors[i];
    text += fmt::format("  {:>10}  {} {}, {}{}{}{}  {}\n", format_bytes(tensor.storage_bytes), to_string(tensor.sizes),
                        name_of(tensor.dtype), with_label(tensor.purpose, tensor.label), memory_of(tensor),
                        tensor.bytes < tensor.storage_bytes ? ", uses " + format_bytes(tensor.bytes) + " of it" : "",
                        tensor.grad_fn.empty() ? "" : ", of " + tensor.grad_fn, tensor.made_at);
  }
  return text + and_more(tensors.size(), most);
}

Mark mark(std::string name, Device device) {
  const DeviceState& state = device_state(device);
  if (!state.history().recording() || !state.history().settings().keeps_live) {
    throw Error(
        fmt::format("a mark on {}: nothing is known of what lives there; keep a "
                    "tenon::memory::LiveRecording",
                    state.device().str()));
  }
  return {.name = std::move(name), .device = state.device(), .blocks = state.history().live_blocks()};
}

MarkDiff diff(const Mark& from, const Mark& to) {
  if (from.device != to.device) {
    throw Error(fmt::format("a difference of marks on {} and on {}: they must be of one device", from.device.str(),
                            to.device.str()));
  }
  std::map<std::uint64_t, bool> before;  // number -> lives still
  for (const LiveBlock& block : from.blocks) before.emplace(block.number, false);
  using Key = std::tuple<std::string, Purpose, std::uint16_t, bool, std::uint64_t>;
  std::map<Key, DiffRow> rows;
  SiteNames names(to.device);
  MarkDiff result{.from = from.name, .to = to.name};
  const auto count = [&](const LiveBlock& block, std::int64_t sign) {
    DiffRow& row = rows[{names.of_block(block.stack), block.purpose, block.label, block.page_locked, block.bytes}];
    row.blocks += sign;
    row.bytes += sign * static_cast<std::int64_t>(block.bytes);
    result.bytes += sign * static_cast<std::int64_t>(block.bytes);
  };
  for (const LiveBlock& block : to.blocks) {
    const auto found = before.find(block.number);
    if (found == before.end()) {
      count(block, 1);
    } else {
      found->second = true;
    }
  }
  for (const LiveBlock& block : from.blocks)
    if (!before[block.number]) count(block, -1);
  for (auto& [key, row] : rows) {
    if (row.blocks == 0) continue;
    std::tie(row.site, row.purpose, std::ignore, row.page_locked, row.block_bytes) = key;
    row.label = label_name(std::get<2>(key));
    result.rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(result.rows, std::ranges::greater(), &DiffRow::bytes);
  return result;
}

std::string MarkDiff::text(std::size_t most) const {
  const std::string between =
      from.empty() && to.empty() ? std::string("between the marks") : fmt::format("from '{}' to '{}'", from, to);
  std::string text = fmt::format("{} {}\n", signed_bytes(bytes), between);
  for (std::size_t i = 0; i < std::min(most, rows.size()); ++i) {
    const DiffRow& row = rows[i];
    text += fmt::format("  {:>11}  {:>+5} x {:<10}  {}{}  {}\n", signed_bytes(row.bytes), row.blocks,
                        format_bytes(row.block_bytes), with_label(row.purpose, row.label),
                        row.page_locked ? ", page-locked" : "", row.site);
  }
  return text + and_more(rows.size(), most);
}

std::string live_blocks_text(Device device, std::size_t most) {
  const Mark now = mark({}, device);
  MarkDiff all = diff({.name = {}, .device = now.device, .blocks = {}}, now);
  const std::size_t page_locked = page_locked_bytes(now.blocks);
  std::string text =
      fmt::format("{} still live on {} in {}{}\n", format_bytes(static_cast<std::size_t>(all.bytes)), now.device.str(),
                  counted(now.blocks.size(), "block"),
                  page_locked == 0 ? "" : fmt::format(", {} of it page-locked", format_bytes(page_locked)));
  const std::string rows = all.text(most);
  return text + rows.substr(rows.find('\n') + 1);
}

namespace {

/// The devices whose live blocks are told of when they are closed, or else when the program ends.
struct ReportsAtExit {
  std::mutex mutex;
  std::vector<Device> devices;
  std::vector<std::unique_ptr<LiveRecording>> recordings;
  std::unique_ptr<ClosingHandle> closing;

  void tell_all() noexcept {
    std::lock_guard lock(mutex);
    for (const Device device : devices) {
      try {
        std::fputs(("tenon: at exit " + live_blocks_text(device)).c_str(), stderr);
      } catch (const std::exception&) {  // somebody ended the recording
      }
    }
    devices.clear();
  }
};

ReportsAtExit& reports() {
  static auto* const all = new ReportsAtExit;  // never destroyed: it is used while statics are torn down
  return *all;
}

[[maybe_unused]] const bool kIsAskedByTheEnvironment = [] {
  const char* given = std::getenv("TENON_LIVE_AT_EXIT");
  const std::string_view word = given == nullptr ? "" : given;
  const auto is_one_of = [&](const auto&... words) { return ((word == words) || ...); };
  const bool asked = is_one_of("1", "true", "yes", "on");
  if (!asked && !is_one_of("", "0", "false", "no", "off"))
    std::fprintf(stderr, "tenon: unknown word '%s' in TENON_LIVE_AT_EXIT: it is 1, or 0 for no table\n", given);
  if (asked) set_device_opened(&report_live_at_exit);
  return asked;
}();

}  // namespace

void report_live_at_exit(Device device) {
  static std::once_flag told_before_recordings_end, told_before_devices_end;
  std::call_once(told_before_recordings_end,
                 [] { reports().closing = std::make_unique<ClosingHandle>([] { reports().tell_all(); }); });
  auto recording = std::make_unique<LiveRecording>(device);
  std::call_once(told_before_devices_end, [] { std::atexit([] { reports().tell_all(); }); });
  std::lock_guard lock(reports().mutex);
  if (std::ranges::find(reports().devices, recording->device()) != reports().devices.end()) return;
  reports().devices.push_back(recording->device());
  reports().recordings.push_back(std::move(recording));
}

}  // namespace tenon::memory
