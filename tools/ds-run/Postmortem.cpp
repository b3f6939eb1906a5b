//===- Postmortem.cpp - ds-run postmortem ---------------------------------===//
#include "tools/ds-run/Postmortem.h"

#include "core/AtomicFile.h"
#include "core/Files.h"
#include "core/Overwriting.h"
#include "runtime/plan/format/Lengths.h"
#include "runtime/plan/format/PlanReader.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/postmortem/FlightTimeline.h"
#include "runtime/postmortem/Postmortem.h"
#include "runtime/postmortem/Records.h"
#include "tools/ds-run/Arguments.h"

#include <cstdio>
#include <filesystem>
#include <vector>

namespace ds::run {

void postmortem(const PostmortemArguments &arguments) {
  std::vector<NamedPath> inputs = {{"the plan", arguments.planPath}};
  for (const std::filesystem::path &path : listFolder(arguments.folder))
    inputs.push_back({"what a rank wrote,", path});
  refuseOverwriting({"--trace", arguments.trace}, inputs);
  const plan::proto::Plan plan = plan::withProgramsOfAllSizes(plan::readPlan(arguments.planPath));
  const runtime::Records records = runtime::readRecords(arguments.folder, plan);
  std::fputs(runtime::postmortemText(plan, records).c_str(), stdout);
  if (!arguments.trace.empty())
    writeFileAtomically(arguments.trace, runtime::flightTimeline(plan, records));
}

} // namespace ds::run
