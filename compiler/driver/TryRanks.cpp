//===- TryRanks.cpp - would a model fit on so many ranks ------------------===//
#include "compiler/driver/TryRanks.h"

#include "compiler/config/Config.h"
#include "compiler/driver/Fault.h"
#include "core/Error.h"

using namespace ds;
using namespace ds::driver;

static std::vector<plan::proto::ConfigAnswer> answersOf(const std::vector<config::KeyAnswer> &answers) {
  std::vector<plan::proto::ConfigAnswer> result;
  for (const config::KeyAnswer &answer : answers) {
    plan::proto::ConfigAnswer &line = result.emplace_back();
    line.set_path(answer.path);
    line.set_value_json(answer.valueJson);
    line.set_status(answer.status);
    line.set_note(answer.note);
  }
  return result;
}

static report::FitCase tryOnce(CompileRequest request, int64_t ranks) {
  request.emit = Emit::PlanFile;
  request.overrides.ranks = ranks;
  report::FitCase one;
  one.ranks = uint64_t(ranks);
  try {
    one.plan = compile(request).plan;
    one.config.assign(one.plan->config().begin(), one.plan->config().end());
  } catch (const config::ConfigError &error) {
    one.refusal = error.what();
    one.tryLine = error.tryLine;
    one.details = error.details;
    one.config = answersOf(error.answers);
  } catch (const CompilerFault &) { // says nothing about what fits
    throw;
  } catch (const Error &error) {
    one.refusal = error.what();
    one.tryLine = error.tryLine;
  }
  return one;
}

std::vector<report::FitCase> ds::driver::tryRanks(const CompileRequest &request, std::span<const int64_t> ranks) {
  requireReadable(request);
  std::vector<report::FitCase> cases;
  for (int64_t count : ranks)
    cases.push_back(tryOnce(request, count));
  return cases;
}
