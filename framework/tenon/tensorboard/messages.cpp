// Each message is built from the inside out, field by field. protozero does the encoding; libprotobuf would need
// TensorFlow's schema and its compiler in the build, and itself in every program.
#include <tenon/core/text/utf8.h>
#include <tenon/tensorboard/messages.h>

#include <protozero/pbf_builder.hpp>

#include <variant>

namespace tenon::tensorboard {

namespace {

using protozero::pbf_builder;

enum class Summary : protozero::pbf_tag_type { kValue = 1 };
enum class Value : protozero::pbf_tag_type {
  kTag = 1,
  kSimpleValue = 2,
  kImage = 4,
  kHistogram = 5,
  kTensor = 8,
  kMetadata = 9
};
enum class Image : protozero::pbf_tag_type { kHeight = 1, kWidth = 2, kColorspace = 3, kEncoded = 4 };
enum class HistogramField : protozero::pbf_tag_type {
  kMin = 1,
  kMax = 2,
  kCount = 3,
  kSum = 4,
  kSumOfSquares = 5,
  kLimits = 6,
  kCounts = 7
};
enum class Metadata : protozero::pbf_tag_type { kPluginData = 1 };
enum class PluginData : protozero::pbf_tag_type { kName = 1, kContent = 2 };
enum class TensorField : protozero::pbf_tag_type { kDtype = 1, kShape = 2, kStrings = 8 };
enum class Shape : protozero::pbf_tag_type { kDim = 2 };
enum class Dim : protozero::pbf_tag_type { kSize = 1 };
constexpr std::int32_t kStringDtype = 7;

enum class HParamsData : protozero::pbf_tag_type { kVersion = 1, kExperiment = 2, kStart = 3, kEnd = 4 };
enum class Experiment : protozero::pbf_tag_type { kParameters = 4, kMetrics = 5 };
enum class ParameterInfo : protozero::pbf_tag_type { kName = 1, kType = 4 };
enum class MetricInfo : protozero::pbf_tag_type { kName = 1 };
enum class MetricName : protozero::pbf_tag_type { kTag = 2 };
enum class SessionStart : protozero::pbf_tag_type { kParameters = 1 };
enum class MapEntry : protozero::pbf_tag_type { kKey = 1, kValue = 2 };
enum class SessionEnd : protozero::pbf_tag_type { kStatus = 1 };
/// google.protobuf.Value.
enum class AnyField : protozero::pbf_tag_type { kNumber = 2, kString = 3, kBool = 4 };

template <class Fill>
std::string summary_of(std::string_view tag, const Fill& fill) {
  std::string text;
  pbf_builder<Summary> summary(text);
  pbf_builder<Value> value(summary, Summary::kValue);
  value.add_string(Value::kTag, valid_utf8(tag));
  fill(value);
  value.commit();
  return text;
}

void add_plugin(pbf_builder<Value>& value, const char* plugin, const std::string& content) {
  pbf_builder<Metadata> metadata(value, Value::kMetadata);
  pbf_builder<PluginData> data(metadata, Metadata::kPluginData);
  data.add_string(PluginData::kName, plugin);
  data.add_bytes(PluginData::kContent, content);
}

/// `kind` stands even where it is empty: it says what the rest is about.
std::string hparams_summary(const char* tag, HParamsData kind, const std::string& message) {
  std::string content;
  pbf_builder<HParamsData> data(content);
  data.add_int32(HParamsData::kVersion, 0);
  data.add_message(kind, message);
  return summary_of(tag, [&](pbf_builder<Value>& value) { add_plugin(value, "hparams", content); });
}

struct TypeOf {  // DataType of the plugin's api.proto
  std::int32_t operator()(const std::string&) const { return 1; }
  std::int32_t operator()(bool) const { return 2; }
  std::int32_t operator()(double) const { return 3; }
};

}  // namespace

std::string scalar_summary(std::string_view tag, double number) {
  return summary_of(tag, [&](pbf_builder<Value>& value) {  //
    value.add_float(Value::kSimpleValue, static_cast<float>(number));
  });
}

std::string histogram_summary(std::string_view tag, const Histogram& histogram) {
  return summary_of(tag, [&](pbf_builder<Value>& value) {
    pbf_builder<HistogramField> message(value, Value::kHistogram);
    message.add_double(HistogramField::kMin, histogram.min);
    message.add_double(HistogramField::kMax, histogram.max);
    message.add_double(HistogramField::kCount, histogram.count);
    message.add_double(HistogramField::kSum, histogram.sum);
    message.add_double(HistogramField::kSumOfSquares, histogram.sum_of_squares);
    message.add_packed_double(HistogramField::kLimits, histogram.limits.begin(), histogram.limits.end());
    message.add_packed_double(HistogramField::kCounts, histogram.counts.begin(), histogram.counts.end());
  });
}

std::string image_summary(std::string_view tag, const EncodedImage& image) {
  return summary_of(tag, [&](pbf_builder<Value>& value) {
    pbf_builder<Image> message(value, Value::kImage);
    message.add_int32(Image::kHeight, image.height);
    message.add_int32(Image::kWidth, image.width);
    message.add_int32(Image::kColorspace, image.channels);
    message.add_bytes(Image::kEncoded, image.png);
  });
}

std::string text_summary(std::string_view tag, std::string_view text) {
  return summary_of(std::string(tag) + "/text_summary", [&](pbf_builder<Value>& value) {
    add_plugin(value, "text", "");
    pbf_builder<TensorField> tensor(value, Value::kTensor);
    tensor.add_enum(TensorField::kDtype, kStringDtype);
    {
      pbf_builder<Shape> shape(tensor, TensorField::kShape);
      pbf_builder<Dim> dim(shape, Shape::kDim);
      dim.add_int64(Dim::kSize, 1);
    }
    tensor.add_bytes(TensorField::kStrings, valid_utf8(text));
  });
}

std::string experiment_summary(const HParams& parameters, const std::vector<std::string>& metrics) {
  std::string message;
  pbf_builder<Experiment> experiment(message);
  for (const auto& [name, parameter] : parameters) {
    pbf_builder<ParameterInfo> info(experiment, Experiment::kParameters);
    info.add_string(ParameterInfo::kName, valid_utf8(name));
    info.add_enum(ParameterInfo::kType, std::visit(TypeOf{}, parameter.value));
  }
  for (const std::string& metric : metrics) {
    pbf_builder<MetricInfo> info(experiment, Experiment::kMetrics);
    pbf_builder<MetricName> name(info, MetricInfo::kName);
    name.add_string(MetricName::kTag, valid_utf8(metric));
  }
  return hparams_summary("_hparams_/experiment", HParamsData::kExperiment, message);
}

std::string session_start_summary(const HParams& parameters) {
  std::string message;
  pbf_builder<SessionStart> start(message);
  for (const auto& [name, parameter] : parameters) {
    pbf_builder<MapEntry> entry(start, SessionStart::kParameters);
    entry.add_string(MapEntry::kKey, valid_utf8(name));
    pbf_builder<AnyField> any(entry, MapEntry::kValue);
    if (const bool* flag = std::get_if<bool>(&parameter.value)) {
      any.add_bool(AnyField::kBool, *flag);
    } else if (const double* number = std::get_if<double>(&parameter.value)) {
      any.add_double(AnyField::kNumber, *number);
    } else {
      any.add_string(AnyField::kString, valid_utf8(std::get<std::string>(parameter.value)));
    }
  }
  return hparams_summary("_hparams_/session_start_info", HParamsData::kStart, message);
}

std::string session_end_summary(SessionStatus status) {
  std::string message;
  pbf_builder<SessionEnd>(message).add_enum(SessionEnd::kStatus, static_cast<std::int32_t>(status));
  return hparams_summary("_hparams_/session_end_info", HParamsData::kEnd, message);
}

}  // namespace tenon::tensorboard
