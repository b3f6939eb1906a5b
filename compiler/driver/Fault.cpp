//===- Fault.cpp - what this compiler got wrong ---------------------------===//
#include "compiler/driver/Fault.h"

#include "compiler/passes/Passes.h"
#include "core/AtomicFile.h"
#include "core/Files.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <google/protobuf/text_format.h>
#include <optional>
#include <string_view>
#include <vector>

using namespace ds;
using namespace ds::driver;

namespace {

/// Keys that make a plan plainer, one of which may be enough.
constexpr std::string_view plainer[] = {"data_types.grad_accum_dtype=fp32",
                                        "communication_data_type=fp32",
                                        "zero_optimization.overlap_comm=false",
                                        "zero_optimization.reduce_bucket_size=500000000",
                                        "zero_optimization.allgather_bucket_size=500000000",
                                        "zero_optimization.offload_param.device=none",
                                        "zero_optimization.offload_optimizer.device=none",
                                        "deepstatic.offload=none",
                                        "deepstatic.recompute=none",
                                        "deepstatic.pipeline.schedule=1f1b",
                                        "zero_optimization.stage=1",
                                        "zero_optimization.stage=0",
                                        "deepstatic.pipeline.stages=1",
                                        "deepstatic.tensor_parallel.size=1",
                                        "bf16.enabled=false",
                                        "fp16.enabled=false"};

/// No further plan is tried after that.
constexpr std::chrono::seconds patience(60);

class WayRound {
public:
  WayRound(const CompileRequest &request, const ProvenCompile &compile) : request_(request), compile_(compile) {
    request_.progress = [](const char *) {};
    request_.warn = [](const std::string &) {};
  }

  std::string find() {
    const std::string passes = withoutPasses();
    return passes.empty() ? withKey() : passes;
  }

private:
  /// Leaves out all that can be, then puts back what may stay.
  std::string withoutPasses() {
    CompileRequest changed = request_;
    changed.without.assign(optionalPasses.begin(), optionalPasses.end());
    if (!compiles(changed))
      return "";
    std::string flags;
    for (const std::string_view pass : optionalPasses) {
      CompileRequest fewer = changed;
      std::erase(fewer.without, pass);
      if (std::ranges::find(request_.without, pass) == request_.without.end() && inTime() && compiles(fewer))
        changed = fewer;
      else
        flags += (flags.empty() ? "--without " : " --without ") + std::string(pass);
    }
    return flags;
  }

  std::string withKey() {
    for (const std::string_view set : plainer) {
      CompileRequest changed = request_;
      changed.overrides.sets.emplace_back(set);
      if (!inTime())
        break;
      if (compiles(changed))
        return "--set " + std::string(set);
    }
    return "";
  }

  bool compiles(const CompileRequest &request) const {
    try {
      compile_(request);
      return true;
    } catch (const Error &) {
      return false;
    }
  }

  bool inTime() const { return std::chrono::steady_clock::now() - begin_ < patience; }

  CompileRequest request_;
  const ProvenCompile &compile_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// PLAN.fault.txt, or PLAN.fault-2.txt and so on: the first that is not there.
std::string reportPath(const std::string &output) {
  std::string path = output + ".fault.txt";
  for (int number = 2; isThere(path); ++number)
    path = output + ".fault-" + std::to_string(number) + ".txt";
  return path;
}

std::string reportOf(const CompileRequest &request, const std::string &commandLine, const CompilerFault &fault) {
  std::filesystem::path model(request.model.path);
  if (model.filename().empty())
    model = model.parent_path();
  std::string text = "version: " DS_VERSION "\nmodel: " + model.filename().string() + "\ncommand: " + commandLine +
                     "\nrule: " + fault.rule + "\nsentence: " + fault.what() + "\n\nconfiguration:\n" +
                     readWhole(request.configPath).value_or("") + "\n";
  if (fault.plan) {
    std::string plan;
    google::protobuf::TextFormat::PrintToString(*fault.plan, &plan);
    text += "\nplan:\n" + plan;
  }
  return text;
}

} // namespace

std::string ds::driver::findWayRound(const CompileRequest &request, const ProvenCompile &compile) {
  return WayRound(request, compile).find();
}

CompileResult ds::driver::compileProven(const CompileRequest &request, const std::string &commandLine,
                                        const ProvenCompile &compile) {
  try {
    return compile(request);
  } catch (const CompilerFault &fault) {
    request.progress("looking for what to leave out");
    const std::string flags = findWayRound(request, compile);
    std::string report = reportPath(request.output);
    try {
      writeFileAtomically(report, reportOf(request, commandLine, fault));
      report = "please send " + report + ", which holds what is needed to find it";
    } catch (const Error &error) {
      report = std::string("no report was written: ") + error.what();
    }
    throw CompilerFault(
        fault.rule,
        std::string(fault.what()) +
            "; this is a fault of the compiler, not of your model or configuration, and no plan was "
            "written; " +
            (flags.empty() ? "no pass or key was found without which it compiles" : "it compiles with " + flags) +
            "; " + report,
        fault.plan, flags);
  }
}
