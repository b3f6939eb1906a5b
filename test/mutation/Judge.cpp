//===- Judge.cpp - what becomes of a broken plan ---------------------------===//
#include "test/mutation/Judge.h"

#include "compiler/certify/Refusal.h"
#include "core/Crc32c.h"
#include "core/Error.h"
#include "kernels/KernelRegistry.h"
#include "runtime/plan/format/PlanFile.h"
#include "runtime/plan/format/PlanReader.h"
#include "runtime/session/DeviceChoice.h"
#include "runtime/session/StepReport.h"
#include "runtime/session/Training.h"
#include "test/mutation/DelayedDevice.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <poll.h>
#include <span>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace ds::mutation {

namespace {

constexpr int secondsAllowed = 60; // of all runs of one plan, which take one

/// Every number that a run tells, bit by bit.
class Digest final : public runtime::TrainingObserver {
public:
  void stepDone(const runtime::StepReport &report) noexcept override {
    for (const auto &value : {report.loss, report.gradientNorm, report.learningRate})
      add(value);
  }
  void evaluated(const runtime::EvaluationReport &report) noexcept override { add(report.loss); }
  void add(const std::optional<runtime::Scalar> &value) noexcept {
    text_ << std::hexfloat << (value ? value->asDouble() : 0) << ' ';
  }
  void addFile(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    text_ << crc32c(std::as_bytes(std::span(bytes.view())));
  }
  std::string text() const { return text_.str(); }

private:
  std::ostringstream text_;
};

/// Calls `work` in a child process and returns what it says; what it says last if it dies or takes too long.
std::string inChild(const std::function<std::string()> &work) {
  int ends[2];
  if (pipe(ends) != 0)
    throw Error("no pipe could be made");
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    const std::string text = work();
    (void)!write(ends[1], text.data(), text.size());
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(secondsAllowed);
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd waiting{ends[0], POLLIN, 0};
    char buffer[4096];
    if (left.count() <= 0 || poll(&waiting, 1, int(left.count())) == 0) {
      kill(child, SIGKILL);
      text = "Fit still ran after " + std::to_string(secondsAllowed) + " s";
      break;
    }
    const ssize_t count = read(ends[0], buffer, sizeof buffer);
    if (count <= 0)
      break;
    text.append(buffer, size_t(count));
  }
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return text.empty() ? "Fit crashed" : text;
}

} // namespace

Judge::Judge(const plan::proto::Plan &plan, Options options) : plan_(plan), options_(std::move(options)) {
  if (const auto finding = certify::refusalOf(plan))
    throw Error("a plan that nobody broke is refused: " + finding->sentence);
}

/// Once as it is, or several times with delays and NaN patterns in dead memory; all runs must agree.
Judge::Trial Judge::train(const plan::proto::Plan &plan, bool disturbed) const {
  const std::string text = inChild([&]() -> std::string {
    const std::string name = options_.folder + "/mutant-" + std::to_string(getpid());
    runtime::TrainingOptions training;
    training.planPath = name + ".dsplan";
    training.exportPath = name + ".safetensors";
    training.data = training.evaluationData = {options_.data};
    training.steps = uint64_t(options_.steps);
    training.threads = 1;
    training.checkMemory = disturbed;
    training.collectiveTimeout = std::chrono::seconds(10);
    std::string digest, result;
    char phase = 'L';
    try {
      plan::writePlanFile(training.planPath, plan);
      for (int run = 0; run < (disturbed ? options_.runs : 1); ++run) {
        if (disturbed) {
          auto seed = std::make_shared<uint64_t>(uint64_t(run + 1) * 100);
          training.makeDevice = [seed, &plan](uint32_t rank) {
            return delayedDevice((*seed)++, runtime::nvmePlace(plan, {}, rank));
          };
        }
        phase = 'L';
        runtime::Training all(training, kernels::cpuKernels());
        phase = 'F';
        Digest seen;
        all.run(seen, std::atomic<bool>(false));
        seen.addFile(training.exportPath);
        if (run > 0 && seen.text() != digest)
          throw Error("two runs end with different bits");
        digest = seen.text();
      }
      result = "D" + digest;
    } catch (const std::exception &error) {
      result = phase + std::string(error.what());
    }
    std::error_code ignored;
    std::filesystem::remove(training.planPath, ignored);
    std::filesystem::remove(training.exportPath, ignored);
    return result;
  });
  return {text[0], text.substr(1)};
}

Judgement Judge::judge(const plan::proto::Plan &broken) {
  try {
    const std::string file = plan::framePlan(broken);
    plan::validatePlan(plan::unframePlan(std::as_bytes(std::span(file))));
  } catch (const Error &error) {
    return {Outcome::Reader, error.what()};
  }
  if (const auto finding = certify::refusalOf(broken))
    return {Outcome::Checker, finding->sentence};
  const Trial trial = train(broken, /*disturbed=*/true);
  if (trial.kind == 'L')
    return {Outcome::Load, trial.text};
  if (trial.kind == 'F')
    return {Outcome::Missed, trial.text};
  if (digest_.empty()) {
    const Trial whole = train(plan_, /*disturbed=*/false);
    if (whole.kind != 'D')
      throw Error("a plan that nobody broke does not train: " + whole.text);
    digest_ = whole.text;
  }
  if (trial.text != digest_)
    return {Outcome::Missed, "other bits than the plan that was not broken"};
  return {Outcome::Equal, ""};
}

} // namespace ds::mutation
