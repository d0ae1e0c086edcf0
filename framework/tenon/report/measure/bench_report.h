// What `tenon bench` says: a table, sentences, JSON.
#pragma once

#include <tenon/core/export.h>
#include <tenon/measure/bench/bench.h>
#include <tenon/measure/bench/host_noise.h>
#include <tenon/measure/statistics/gate_expression.h>
#include <tenon/report/table.h>

#include <string>
#include <vector>

namespace tenon {

/// A row for each workload and allocator, and one for all workloads together.
TENON_API Table bench_table(const measure::BenchResult& result);

/// A sentence on how it was measured, and one for each allocator that has no figures.
TENON_API std::string bench_method(const measure::BenchResult& result, const measure::BenchOptions& options);
TENON_API std::vector<std::string> bench_failures(const measure::BenchResult& result);

/// schema_version 1, kind "bench"; a row for each workload and allocator with the figures of every round.
TENON_API std::string bench_json(const measure::BenchResult& result, const measure::BenchOptions& options,
                                 const measure::HostNoise& noise, const std::vector<measure::GateExpression>& gates,
                                 const std::vector<std::vector<std::string>>& trips,
                                 const std::string& environment_json);

/// What gates of a bench are judged on: nanoseconds per pair, and the ratios of paired rounds.
class TENON_API BenchFigures final : public measure::GateFigures {
 public:
  explicit BenchFigures(const measure::BenchResult& result) : result_(result) {}
  static measure::GateNames names(const std::vector<std::string>& subjects);
  std::size_t cases() const override { return result_.workloads.size(); }
  std::string case_name(std::size_t which) const override { return result_.workloads[which]; }
  std::size_t subjects() const override { return result_.allocators(); }
  std::string subject_name(std::size_t subject) const override { return result_.subjects[subject].name; }
  /// An allocator that failed, or too few rounds.
  std::string why_unjudged(const measure::GateQuestion& question) const override;
  std::optional<measure::Interval> figure(std::size_t which, std::size_t subject,
                                          const std::string& metric) const override;
  std::optional<measure::Interval> ratio(std::size_t which, const measure::GateOperand& left, std::size_t left_subject,
                                         const measure::GateOperand& right, std::size_t right_subject) const override;

 private:
  const measure::BenchResult& result_;
};

}  // namespace tenon
