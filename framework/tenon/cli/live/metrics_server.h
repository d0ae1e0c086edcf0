// A page for Prometheus: the latest figures of the run over HTTP, in its text format.
#pragma once

#include <tenon/cli/live/live_figures.h>

#include <memory>
#include <string>

namespace tenon::cli {

class MetricsServer {
 public:
  /// "9464", "127.0.0.1:9464", "0.0.0.0:9464": IPv4; without an address this machine alone can ask; port 0: one that is
  /// free.
  /// Throws ConfigError where it is no such word, Error where nobody can listen there.
  explicit MetricsServer(const std::string& address);
  /// The last figures are answered as long as the process lives.
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  /// "http://127.0.0.1:9464/metrics"
  const std::string& url() const { return url_; }
  /// What is answered from now on.
  void publish(const LiveFigures& figures);

  /// Whether such a word leaves the port open.
  static bool takes_free_port(const std::string& address);
  /// What is wrong with such a word; empty: nothing.
  static std::string problem_of(const std::string& address);

 private:
  struct Served;
  std::string url_;
  std::shared_ptr<Served> served_;
};

}  // namespace tenon::cli
