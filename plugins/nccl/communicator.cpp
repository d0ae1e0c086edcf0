// Requests as calls of NCCL, in the order of streams.
//
//   program's stream   …compute… ─┬─────────── …compute… ──
//                                 └ event
//   NCCL's stream                   └▶ begin │ ncclAllReduce │ end ──▶ asked for by who waits
//
// Note [Sends and receives]: NCCL carries them out in the order of the stream, so that two ranks which both receive
// first would wait for each other. Here they wait until somebody waits for one of them or a collective begins, and then
// begin as one group, in any order.
#include "communicator.h"

#include "types.h"

#include <tenon/comm/group_id.h>
#include <tenon/comm/rank_environment.h>
#include <tenon/device/device_state.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <thread>

namespace tenon::nccl {

namespace {

// Launchers end what is left as soon as a rank has ended badly. Rank 0 writes the results: it goes first.
constexpr std::chrono::seconds kTimeOfRank0{30};

}  // namespace

OptionSchema NcclCommunicator::options() {
  return {
      OptionSpec::real("timeout", 600.0,
                       "seconds after which an operation fails that not every rank has come to, and names them")
          .range(0.1, 1e6),
      OptionSpec::integer("device", -1, "this rank's device; -1: the one with its number on the machine (LOCAL_RANK)")
          .range(std::int64_t{-1}, std::int64_t{4096})};
}

NcclCommunicator::NcclCommunicator(const CommunicatorContext& context)
    : timeout_(static_cast<std::int64_t>(1000 * context.options.real("timeout"))) {
  const std::int64_t chosen = context.options.integer("device");
  ordinal_ = chosen < 0 ? context.ranks.local_rank : static_cast<int>(chosen);
  api();  // a library that is missing is said before anybody waits
  context_ = std::make_unique<DeviceContext>(ordinal_);
  Meeting::Group all;
  for (int rank = 0; rank < context.ranks.size; ++rank) all.ranks.push_back(rank);
  shared_ = std::make_shared<Shared>(std::make_shared<Meeting>(context.ranks, timeout_), std::move(all));
  rank_ = shared_->meeting.rank();
  UniqueId id{};
  if (rank() == 0) check(api().get_unique_id(&id), "ncclGetUniqueId");
  std::copy_n(shared_->meeting.share(std::to_array(id.internal)).begin(), sizeof id.internal, id.internal);
  meet(id);
}

NcclCommunicator::NcclCommunicator(const NcclCommunicator& whole, Meeting::Group group, const UniqueId& id)
    : timeout_(whole.timeout_), context_(std::make_unique<DeviceContext>(whole.ordinal_)), ordinal_(whole.ordinal_) {
  shared_ = std::make_shared<Shared>(whole.shared_->of_all, std::move(group));
  rank_ =
      static_cast<int>(std::ranges::find(shared_->group.ranks, shared_->meeting.rank()) - shared_->group.ranks.begin());
  meet(id);
}

void NcclCommunicator::meet(const UniqueId& id) {
  shared_->flush = [this] { flush(); };
  shared_->meeting.add(
      {.group = shared_->group.id, .number = &number_, .failed = [this] { end_nccl(); }, .look = [this] { look(); }});
  try {
    connect(id);
  } catch (const std::exception& error) {
    const auto* const known = dynamic_cast<const DistributedError*>(&error);
    shared_->meeting.fail(known != nullptr ? *known : DistributedError(error.what(), {shared_->meeting.rank()}));
    end_nccl();
    shared_->flush = [] {};
    shared_->meeting.remove(shared_->group.id);
    throw;
  }
}

// Each group has an id of its own, which every version from 2.14 on knows: ncclCommSplit came with 2.18.
std::shared_ptr<Communicator> NcclCommunicator::make_group(const std::vector<int>& members) {
  UniqueId id{};
  if (!members.empty() && members.front() == rank()) check(api().get_unique_id(&id), "ncclGetUniqueId");
  std::vector<char> ids(sizeof id.internal * static_cast<std::size_t>(size()));
  all_gather({.data = ids.data(), .count = ids.size(), .dtype = Dtype::kUInt8},
             {.data = id.internal, .count = sizeof id.internal, .dtype = Dtype::kUInt8})
      ->wait();
  const std::int64_t number = ++groups_made_;
  if (members.empty()) return nullptr;
  Meeting::Group group;
  for (const int member : members) group.ranks.push_back(shared_->group.ranks[static_cast<std::size_t>(member)]);
  group.id = id_of_group(shared_->group.id, number, group.ranks.front());
  group.text = fmt::format(" among ranks {}", fmt::join(group.ranks, ", "));
  std::copy_n(ids.data() + sizeof id.internal * static_cast<std::size_t>(members.front()), sizeof id.internal,
              id.internal);
  return std::shared_ptr<Communicator>(new NcclCommunicator(*this, std::move(group), id));
}

/// Every rank comes to it with the id that rank 0 has shared.
void NcclCommunicator::connect(const UniqueId& id) {
  const auto until = Clock::now() + timeout_;
  Config config;
  Comm comm = nullptr;
  const CurrentDevice current(*context_);
  Result result = api().comm_init(&comm, size(), id, rank(), &config);
  {
    const std::lock_guard lock(mutex_);
    comm_ = comm;
  }
  while (result == kInProgress) {
    if (const auto failure = shared_->meeting.failure()) throw DistributedError(*failure);
    if (Clock::now() > until)
      throw DistributedError(
          fmt::format("{}: ncclCommInitRankConfig has not met all ranks within {:.1f} s: NCCL_DEBUG=INFO makes "
                      "NCCL say what it waits for; raise timeout where it is only slow",
                      shared_->meeting.own_text(), std::chrono::duration<double>(timeout_).count()),
          {});
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    check(api().get_async_error(comm, &result), "ncclCommGetAsyncError");
  }
  check(result, "ncclCommInitRankConfig");
}

NcclCommunicator::~NcclCommunicator() {
  closing_.reset();
  close_device();
  try {
    Comm comm = nullptr;
    {
      const std::lock_guard lock(mutex_);
      comm = comm_;
    }
    if (comm != nullptr) {
      const CurrentDevice current(*context_);
      settle(api().comm_finalize(comm), "ncclCommFinalize");
      const std::lock_guard lock(mutex_);
      if (comm_ != nullptr) api().comm_destroy(std::exchange(comm_, nullptr));
    }
  } catch (const Error&) {  // whoever waited for what failed was told
  }
  shared_->flush = [] {};
  shared_->meeting.remove(shared_->group.id);
  end_nccl();
}

/// What is under way ends; then nothing of the device is kept.
void NcclCommunicator::close_device() noexcept {
  if (device_ == nullptr) return;
  std::vector<std::weak_ptr<Operation>> under_way;
  try {
    flush();
    const std::lock_guard lock(mutex_);
    under_way = under_way_;
  } catch (const std::exception&) {  // a failure, of which others are told
  }
  for (const auto& one : under_way) {
    const auto operation = one.lock();
    if (!operation) continue;
    try {
      operation->wait(timeout_);
    } catch (const std::exception&) {  // whoever waits for it is told
    }
    operation->let_go();
  }
  shared_->driver->destroy_stream(stream_);
  shared_->driver->destroy_stream(host_stream_);
  shared_->driver = nullptr;
  device_ = nullptr;
}

void NcclCommunicator::check(Result result, const std::string& what) const {
  if (result == kSuccess || result == kInProgress) return;
  const char* const detail = api().get_last_error(nullptr);  // of this process, whichever communicator
  throw DistributedError(fmt::format("{}: {}: {}{}{}; NCCL_DEBUG=WARN makes NCCL say more", shared_->meeting.own_text(),
                                     what, api().get_error_string(result),
                                     detail != nullptr && *detail != '\0' ? ": " : "", detail == nullptr ? "" : detail),
                         {});
}

/// Until NCCL has taken a call. A failure ends the communicator.
void NcclCommunicator::settle(Result result, const std::string& what) {
  const auto until = Clock::now() + timeout_;
  try {
    while (result == kInProgress) {
      {
        const std::lock_guard lock(mutex_);
        if (comm_ == nullptr) break;
        check(api().get_async_error(comm_, &result), "ncclCommGetAsyncError");
      }
      if (result != kInProgress) break;
      if (shared_->meeting.failure()) break;
      if (Clock::now() > until) shared_->meeting.report_late(shared_->group, number_, what, timeout_);
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    if (const auto failure = shared_->meeting.failure()) throw DistributedError(*failure);
    check(result, what);
  } catch (const DistributedError& error) {
    shared_->meeting.fail(error);
    throw;
  }
}

std::function<Result(CudaStream)> NcclCommunicator::call_of(const CommRequest& request) const {
  const Elements elements = elements_of(request);
  const RedOp op = op_of(request);
  const auto call = [this, request, elements](auto function) {
    return
        [this, request, elements, function](CudaStream stream) { return function(request, elements, comm_, stream); };
  };
  using R = const CommRequest&;
  using E = const Elements&;
  switch (request.kind) {
    case CommKind::kAllReduce:
      return call([op](R r, E e, Comm comm, CudaStream stream) {
        return api().all_reduce(r.input, r.output, e.count, e.type, op, comm, stream);
      });
    case CommKind::kBroadcast:
      return call([](R r, E e, Comm comm, CudaStream stream) {
        return api().broadcast(r.output, r.output, e.count, e.type, r.peer, comm, stream);
      });
    case CommKind::kAllGather:
      return call([](R r, E e, Comm comm, CudaStream stream) {
        return api().all_gather(r.input, r.output, e.count, e.type, comm, stream);
      });
    case CommKind::kReduceScatter:
      return call([op](R r, E e, Comm comm, CudaStream stream) {
        return api().reduce_scatter(r.input, r.output, e.count, e.type, op, comm, stream);
      });
    case CommKind::kSend:
      return call([](R r, E e, Comm comm, CudaStream stream) {
        return api().send(r.input, e.count, e.type, r.peer, comm, stream);
      });
    case CommKind::kReceive:
      return call([](R r, E e, Comm comm, CudaStream stream) {
        return api().receive(r.output, e.count, e.type, r.peer, comm, stream);
      });
    case CommKind::kBarrier:
      break;
  }
  return [](CudaStream) { return kSuccess; };
}

/// NCCL would read and write it from this rank's device, which may not reach it: that ends the device for the process.
void NcclCommunicator::check_memory(const CommRequest& request) const {
  for (const void* const address : {request.input, static_cast<const void*>(request.output)}) {
    const int device = address == nullptr || request.count == 0 ? -1 : device_of(address);
    if (device < 0 || device == ordinal_) continue;
    throw Error(
        fmt::format("{}: {}: its memory is of cuda:{}, and this rank's communicator works on cuda:{}: move the "
                    "values there, or say distributed.nccl.device",
                    shared_->meeting.own_text(), name_of(request.kind), device, ordinal_));
  }
}

/// With the first operation, since a device that is open keeps its allocator: a program meets its ranks before it says
/// which one that is.
void NcclCommunicator::open_device() {
  if (device_ != nullptr) return;
  if (!closing_) closing_ = std::make_unique<ClosingHandle>([this] { close_device(); });
  device_ = &device_state(Device(DeviceType::named("cuda"), static_cast<DeviceIndex>(ordinal_)));
  shared_->driver = &device_->driver();
  stream_ = shared_->driver->create_stream(/*priority=*/0);
  host_stream_ = shared_->driver->create_stream(/*priority=*/0);
}

/// Its buffers in device memory, if they are not, and the operation under way for who looks after it.
std::shared_ptr<Operation> NcclCommunicator::made(CommRequest request, std::int64_t number) {
  const auto timeout = request.options.timeout.count() > 0 ? request.options.timeout : timeout_;
  if (request.kind != CommKind::kBarrier) open_device();
  auto staging =
      request.kind == CommKind::kBarrier ? nullptr : Staging::of(request, *device_, host_stream_, stream_, size());
  if (staging) request.options.stream = host_stream_;
  auto operation = std::make_shared<Operation>(shared_, request, number, timeout);
  operation->go_through(std::move(staging));
  const std::lock_guard lock(mutex_);
  std::erase_if(under_way_, [](const auto& one) { return one.expired(); });
  under_way_.push_back(operation);
  return operation;
}

std::shared_ptr<Work> NcclCommunicator::start(const CommRequest& request) {
  if (const auto failure = shared_->meeting.failure()) throw DistributedError(*failure);
  check_memory(request);
  if (request.kind == CommKind::kSend || request.kind == CommKind::kReceive) {
    if (request.tag != 0)
      throw Error(fmt::format("{}: {}: NCCL pairs sends and receives by their order: leave the tag out, not {}",
                              shared_->meeting.own_text(), name_of(request.kind), request.tag));
    return to_group_.emplace_back(made(request, 0));
  }
  flush();
  if (request.kind == CommKind::kBarrier) return made(request, -shared_->meeting.come_to_barrier(shared_->group));
  elements_of(request);  // refuses a dtype before this rank has come to the operation
  auto operation = made(request, ++number_);
  queue({{operation, call_of(operation->request())}});
  return operation;
}

DistributedError NcclCommunicator::closed() const {
  return {fmt::format("{}: the communicator is closed: make another one", shared_->meeting.own_text()), {}};
}

void NcclCommunicator::queue(const std::vector<Queued>& operations) {
  DeviceDriver& driver = *shared_->driver;
  const bool is_group = operations.size() > 1;
  for (const auto& [operation, call] : operations) {
    const EventRef ready = driver.create_event(/*timing=*/false);
    driver.record(ready, operation->request().options.stream);
    driver.wait(stream_, ready);
    driver.destroy_event(ready);
  }
  for (const auto& [operation, call] : operations) operation->begin(stream_);
  std::string what = operations.front().first->text();
  if (is_group) what += fmt::format(" and {} more", operations.size() - 1);
  Result result = kSuccess;
  {
    const CurrentDevice current(*context_);
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) throw shared_->meeting.failure().value_or(closed());
    if (is_group) check(api().group_start(), "ncclGroupStart");
    for (const auto& [operation, call] : operations) {
      result = call(reinterpret_cast<CudaStream>(stream_.id));
      if (result != kSuccess && result != kInProgress) break;
    }
    if (is_group) {
      const Result ended = api().group_end();
      if (result == kSuccess || result == kInProgress) result = ended;
    }
  }
  settle(result, what);
  for (const auto& [operation, call] : operations) operation->end(stream_);
}

/// See Note [Sends and receives].
void NcclCommunicator::flush() {
  if (to_group_.empty() || shared_->meeting.failure()) return;
  std::vector<Queued> group;
  for (const auto& operation : std::exchange(to_group_, {}))
    group.emplace_back(operation, call_of(operation->request()));
  queue(group);
}

void NcclCommunicator::monitored_barrier(std::chrono::milliseconds timeout) { barrier({.timeout = timeout})->wait(); }

void NcclCommunicator::abort(std::string_view reason, ExitCode code) noexcept {
  try {
    shared_->meeting.fail(DistributedError(fmt::format("{} cannot go on: {}", shared_->meeting.own_text(), reason),
                                           {shared_->meeting.rank()}, code));
  } catch (const std::exception&) {  // no memory for a message: the end of this process says it
  }
  end_nccl();
  shared_->meeting.wait_for_end_of_rank_0(kTimeOfRank0);
}

/// What nobody waits for is looked after too.
void NcclCommunicator::look() {
  std::vector<std::shared_ptr<Operation>> operations;
  Result result = kSuccess;
  {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) return;
    if (api().get_async_error(comm_, &result) != kSuccess) result = kInternalError;
    for (const auto& one : under_way_)
      if (auto operation = one.lock()) operations.push_back(std::move(operation));
  }
  try {
    check(result, "ncclCommGetAsyncError");
    for (const auto& operation : operations) operation->look();
  } catch (const DistributedError& error) {
    shared_->meeting.fail(error);
  } catch (const Error& error) {
    shared_->meeting.fail(DistributedError(error.what(), {shared_->meeting.rank()}));
  }
}

/// Kernels that wait for others end, so that the device can be used, and waited for, again.
void NcclCommunicator::end_nccl() noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) return;
    const CurrentDevice current(*context_);
    api().comm_abort(std::exchange(comm_, nullptr));
  } catch (const std::exception&) {  // the driver is gone, and its kernels with it
  }
}

}  // namespace tenon::nccl
