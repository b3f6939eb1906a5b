//===- Report.cpp - which report ------------------------------------------===//
#include "compiler/report/Report.h"

#include "compiler/report/Formats.h"
#include "core/Error.h"
#include "runtime/plan/format/PlanReader.h"
#include "runtime/plan/plan.pb.h"
#include <string>
#include <string_view>

namespace ds::report {

Format formatFromName(std::string_view name) {
  if (name == "text")
    return Format::Text;
  if (name == "json")
    return Format::Json;
  if (name == "html")
    return Format::Html;
  if (name == "perfetto")
    return Format::Perfetto;
  throw Error("--format " + std::string(name.substr(0, 80)) +
              ": there is no such format; text, json, html and perfetto are available");
}

std::string report(const plan::proto::Plan &plan, const Options &options) {
  plan::validatePlan(plan);
  if (options.format == Format::Perfetto)
    return perfettoReport(plan);
  if (options.format == Format::Html)
    return htmlReport(plan, options.allRanks, options.refused);
  return options.format == Format::Json ? jsonReport(plan, options.allRanks) : textReport(plan);
}

} // namespace ds::report
