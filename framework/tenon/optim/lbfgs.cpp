// L-BFGS, written with tensor operators on flat vectors.
#include <tenon/optim/lbfgs.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/serialize/archive.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/support/check.h>
#include <tenon/optim/support/fields.h>
#include <tenon/optim/support/line_search.h>
#include <tenon/optim/support/optimizer_scope.h>

#include <algorithm>
#include <cmath>

template class std::deque<tenon::Tensor>;

namespace tenon::optim {

namespace {

double number(const Tensor& tensor) { return tensor.item<double>(); }

template <class List>
bool same_tensors(const List& a, const List& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_tensor);
}

template <class List>
void write_list(OutputArchive& archive, const std::string& key, const List& tensors) {
  OutputArchive list;
  list.write("size", static_cast<std::int64_t>(tensors.size()));
  for (std::size_t i = 0; i < tensors.size(); ++i) list.write(std::to_string(i), tensors[i]);
  archive.write(key, list);
}
template <class List>
List read_list(InputArchive& archive, const std::string& key) {
  InputArchive list;
  archive.read(key, list);
  List tensors(static_cast<std::size_t>(list.read_integer("size")));
  for (std::size_t i = 0; i < tensors.size(); ++i) list.try_read(std::to_string(i), tensors[i]);
  return tensors;
}

/// Takes the newest pair (s, y) into the history and rescales the first guess of the inverse Hessian.
void remember(LBFGSParamState& state, const Tensor& gradient, std::int64_t history_size) {
  const Tensor y = gradient.sub(state.prev_flat_grad());
  const Tensor s = state.d().mul(state.t());
  const Tensor ys = y.dot(s);
  if (number(ys) <= 1e-10) return;
  if (static_cast<std::int64_t>(state.old_dirs().size()) == history_size) {
    state.old_dirs().pop_front();
    state.old_stps().pop_front();
    state.ro().pop_front();
  }
  state.old_dirs().push_back(y);
  state.old_stps().push_back(s);
  state.ro().push_back(ys.reciprocal());
  state.H_diag(ys.div(y.dot(y)));
}

/// -H gradient by the two-loop recursion.
Tensor direction(LBFGSParamState& state, const Tensor& gradient, std::int64_t history_size) {
  const std::size_t known = state.old_dirs().size();
  if (!state.al()) state.al(std::vector<Tensor>(static_cast<std::size_t>(history_size)));
  std::vector<Tensor>& al = *state.al();
  Tensor q = gradient.neg();
  for (std::size_t i = known; i-- > 0;) {
    al.at(i) = state.old_stps()[i].dot(q).mul(state.ro()[i]);
    q.add_(state.old_dirs()[i], -number(al[i]));
  }
  q.mul_(state.H_diag());
  for (std::size_t i = 0; i < known; ++i) {
    const Tensor be = state.old_dirs()[i].dot(q).mul(state.ro()[i]);
    q.add_(state.old_stps()[i], number(al[i].sub(be)));
  }
  return q;
}

constexpr auto lbfgs_fields = [](auto& options) {
  return std::tuple(Field{"lr", options.lr()}, Field{"max_iter", options.max_iter()},
                    Field{"max_eval", options.max_eval()}, Field{"tolerance_grad", options.tolerance_grad()},
                    Field{"tolerance_change", options.tolerance_change()},
                    Field{"history_size", options.history_size()}, Field{"line_search_fn", options.line_search_fn()});
};

}  // namespace

bool operator==(const LBFGSOptions& a, const LBFGSOptions& b) { return same_fields(a, b, lbfgs_fields); }
void LBFGSOptions::inherit(const OptimizerOptions& defaults) {
  inherit_fields(*this, defaults, LBFGSOptions(), lbfgs_fields);
}
void LBFGSOptions::serialize(OutputArchive& archive) const { write_fields(archive, *this, lbfgs_fields); }
void LBFGSOptions::serialize(InputArchive& archive) { read_fields(archive, *this, lbfgs_fields); }

bool operator==(const LBFGSParamState& a, const LBFGSParamState& b) {
  return a.func_evals() == b.func_evals() && a.n_iter() == b.n_iter() && a.t() == b.t() &&
         a.prev_loss() == b.prev_loss() && same_tensor(a.d(), b.d()) && same_tensor(a.H_diag(), b.H_diag()) &&
         same_tensor(a.prev_flat_grad(), b.prev_flat_grad()) && same_tensors(a.old_dirs(), b.old_dirs()) &&
         same_tensors(a.old_stps(), b.old_stps()) && same_tensors(a.ro(), b.ro()) &&
         a.al().has_value() == b.al().has_value() && (!a.al() || same_tensors(*a.al(), *b.al()));
}
void LBFGSParamState::serialize(OutputArchive& archive) const {
  archive.write("func_evals", func_evals());
  archive.write("n_iter", n_iter());
  archive.write("t", t());
  archive.write("prev_loss", prev_loss());
  archive.write("d", d());
  archive.write("H_diag", H_diag());
  archive.write("prev_flat_grad", prev_flat_grad());
  write_list(archive, "old_dirs", old_dirs());
  write_list(archive, "old_stps", old_stps());
  write_list(archive, "ro", ro());
  if (al()) write_list(archive, "al", *al());
}
void LBFGSParamState::serialize(InputArchive& archive) {
  func_evals(archive.read_integer("func_evals"));
  n_iter(archive.read_integer("n_iter"));
  t(archive.read_real("t"));
  prev_loss(archive.read_real("prev_loss"));
  archive.try_read("d", d());
  archive.try_read("H_diag", H_diag());
  archive.try_read("prev_flat_grad", prev_flat_grad());
  old_dirs(read_list<std::deque<Tensor>>(archive, "old_dirs"));
  old_stps(read_list<std::deque<Tensor>>(archive, "old_stps"));
  ro(read_list<std::deque<Tensor>>(archive, "ro"));
  al(std::nullopt);
  InputArchive present;
  if (archive.try_read("al", present)) al(read_list<std::vector<Tensor>>(archive, "al"));
}

namespace {

/// With a bound of evaluations, which depends on that of iterations where none was given.
std::unique_ptr<LBFGSOptions> with_max_eval(LBFGSOptions options) {
  if (!options.max_eval()) options.max_eval(options.max_iter() * 5 / 4);
  return std::make_unique<LBFGSOptions>(std::move(options));
}

}  // namespace

LBFGS::LBFGS(const std::vector<OptimizerParamGroup>& groups, LBFGSOptions defaults)
    : Optimizer(groups, with_max_eval(defaults)) {
  if (groups_.size() != 1) throw Error("LBFGS doesn't support per-parameter options (parameter groups)");
  check_at_least("learning rate", defaults.lr(), 0);
  check_at_least("history_size", static_cast<double>(defaults.history_size()), 1);
}

Tensor LBFGS::flat_gradient() const {
  std::vector<Tensor> parts;
  for (const Tensor& parameter : groups_[0].params()) {
    const Tensor& gradient = parameter.grad();
    parts.push_back(gradient.defined() ? gradient.reshape({-1}) : parameter.new_zeros({parameter.numel()}));
  }
  return cat(parts);
}

void LBFGS::move(double step, const Tensor& direction) const {
  std::int64_t offset = 0;
  for (const Tensor& parameter : groups_[0].params()) {
    parameter.add_(direction.narrow(0, offset, parameter.numel()).view(parameter.sizes()), step);
    offset += parameter.numel();
  }
}

// Long: the algorithm as it is published.
Tensor LBFGS::step(LossClosure closure) {
  if (!closure) throw Error("LBFGS requires a closure function");
  NoGradGuard no_grad;
  const OptimizerScope scope(*this, "step");
  const scopes::Scope phase(scopes::Phase::kOptimizer);
  PurposeGuard purpose(Purpose::kOptimizerState);
  const auto& options = static_cast<const LBFGSOptions&>(groups_[0].options());
  if (options.line_search_fn() && *options.line_search_fn() != "strong_wolfe") {
    throw Error("LBFGS: only 'strong_wolfe' is supported as line_search_fn, got '" + *options.line_search_fn() + "'");
  }
  auto& state = state_of<LBFGSParamState>(groups_[0].params().at(0));
  const std::int64_t max_eval = options.max_eval().value_or(options.max_iter() * 5 / 4);

  const auto run_closure = [&] {
    PurposeGuard usual(Purpose::kActivation);
    const scopes::Scope forward(scopes::Phase::kForward);
    return loss_of(closure);
  };
  Tensor first_loss = run_closure();
  double loss = number(first_loss);
  std::int64_t evaluations = 1;
  state.func_evals(state.func_evals() + 1);
  Tensor gradient = flat_gradient();
  const auto is_optimal = [&] { return number(gradient.abs().max()) <= options.tolerance_grad(); };
  if (is_optimal()) return first_loss;

  for (std::int64_t iteration = 1; iteration <= options.max_iter(); ++iteration) {
    state.n_iter(state.n_iter() + 1);
    const bool is_first = state.n_iter() == 1;
    if (is_first) {
      state.d(gradient.neg());
      state.H_diag(ones({}, gradient.options()));
      state.old_dirs({});
      state.old_stps({});
      state.ro({});
    } else {
      remember(state, gradient, options.history_size());
      state.d(direction(state, gradient, options.history_size()));
    }
    state.prev_flat_grad(gradient);
    state.prev_loss(loss);
    state.t(is_first ? std::min(1.0, 1 / number(gradient.abs().sum())) * options.lr() : options.lr());
    const double slope = number(gradient.dot(state.d()));
    if (slope > -options.tolerance_change()) break;

    std::int64_t calls = 0;
    bool optimal = false;
    if (options.line_search_fn()) {
      std::vector<Tensor> origin;
      for (const Tensor& parameter : groups_[0].params()) origin.push_back(parameter.clone());
      const auto evaluate = [&](double step) {
        move(step, state.d());
        LinePoint point{.step = step, .loss = number(run_closure()), .slope = 0, .gradient = flat_gradient()};
        point.slope = number(point.gradient.dot(state.d()));
        for (std::size_t i = 0; i < origin.size(); ++i) groups_[0].params()[i].copy_(origin[i]);
        return point;
      };
      const double longest = number(state.d().abs().max());
      const auto found = strong_wolfe(evaluate, {.step = 0, .loss = loss, .slope = slope, .gradient = gradient},
                                      state.t(), {.smallest_bracket = options.tolerance_change() / longest});
      calls = found.evaluations;
      state.t(found.point.step);
      loss = found.point.loss;
      gradient = found.point.gradient;
      move(state.t(), state.d());
      optimal = is_optimal();
    } else {
      move(state.t(), state.d());
      if (iteration != options.max_iter()) {
        loss = number(run_closure());
        gradient = flat_gradient();
        optimal = is_optimal();
        calls = 1;
      }
    }
    evaluations += calls;
    state.func_evals(state.func_evals() + calls);
    if (optimal || evaluations >= max_eval) break;
    if (number(state.d().mul(state.t()).abs().max()) <= options.tolerance_change()) break;
    if (std::abs(loss - state.prev_loss()) < options.tolerance_change()) break;
  }
  return first_loss;
}

std::unique_ptr<OptimizerParamState> LBFGS::make_state() const { return std::make_unique<LBFGSParamState>(); }

template class OptimizerCloneableOptions<LBFGSOptions>;
template class OptimizerCloneableParamState<LBFGSParamState>;

}  // namespace tenon::optim
