//===- Monitor.cpp - what ds_config.json asks to be written while training ===//
#include "runtime/monitor/Monitor.h"

#include "runtime/monitor/CsvFiles.h"
#include "runtime/monitor/EventFile.h"
#include "runtime/monitor/Sink.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/session/StepReport.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace ds::runtime {
namespace {

/// Where a section of the resolved configuration asks for files; nothing where it is not there.
std::optional<std::filesystem::path> folderOf(const nlohmann::json &config, const char *section) {
  const auto text = [&](const char *key) {
    const nlohmann::json::json_pointer pointer(std::string("/") + section + "/" + key);
    return config.contains(pointer) && config[pointer].is_string() ? config[pointer].get<std::string>() : "";
  };
  if (!config.is_object() || !config.contains(section))
    return std::nullopt;
  return std::filesystem::path(text("output_path")) / text("job_name");
}

} // namespace

Monitor::Monitor(const plan::proto::Plan &plan, TrainingObserver &next)
    : next_(next), samplesPerStep_(plan.training().train_batch_size()) {
  const nlohmann::json config = nlohmann::json::parse(plan.config_json(), nullptr, /*allow_exceptions=*/false);
  if (const auto folder = folderOf(config, "tensorboard"))
    sinks_.push_back(std::make_unique<EventFile>(*folder));
  if (const auto folder = folderOf(config, "csv_monitor"))
    sinks_.push_back(std::make_unique<CsvFiles>(*folder));
  for (const std::unique_ptr<Sink> &sink : sinks_)
    next_.noted(("as the configuration asks, metrics go to " + sink->place() + " as well").c_str());
}

void Monitor::stepDone(const StepReport &report) noexcept {
  write("Train/Samples/train_loss", report.step, report.loss);
  write("Train/Samples/lr", report.step, report.learningRate);
  write("Train/Samples/grad_norm", report.step, report.gradientNorm);
  write("Train/Samples/loss_scale", report.step, report.lossScale);
  next_.stepDone(report);
}

void Monitor::evaluated(const EvaluationReport &report) noexcept {
  write("Eval/Samples/eval_loss", report.step, report.loss);
  next_.evaluated(report);
}

void Monitor::write(const char *tag, uint64_t step, const std::optional<Scalar> &value) noexcept {
  for (const std::unique_ptr<Sink> &sink : sinks_)
    if (value)
      if (const Status status = sink->write(tag, step * samplesPerStep_, *value);
          !status.ok() && !std::exchange(failed_, true))
        next_.noted(status.message());
}

} // namespace ds::runtime
