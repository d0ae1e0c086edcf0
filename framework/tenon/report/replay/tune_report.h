// What `tenon tune` says: the settings with their figures as a table, advice in sentences, or all of it as JSON.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/advise/tune.h>
#include <tenon/report/table.h>

#include <string>
#include <vector>

namespace tenon {

/// What the search was about.
struct TuneSubject {
  const std::vector<replay::Trace>& traces;
  const std::vector<std::string>& files;  ///< as the user named them
  const std::string& capacity;            ///< as the user wrote it; empty: unlimited
};

/// The whole output in one of the formats.
TENON_API std::string tune_report(const replay::TuneResult& result, const TuneSubject& subject, TableFormat format,
                                  const std::string& environment_json);

/// Nothing is recommended from this trace: what a program that reads the JSON gets.
TENON_API std::string tune_refusal_json(const std::string& trace, const replay::Trust& trust,
                                        const std::vector<std::string>& files, const std::string& environment_json);

/// Parts of it. The JSON has rows, recommendation and fidelity; the advice is text for people.
std::string tune_json(const replay::TuneResult& result, const TuneSubject& subject,
                      const std::string& environment_json);

}  // namespace tenon
