//===- ChooseSchedule.cpp - in which order micro-batches go through the model --===//
#include "compiler/driver/ChooseSchedule.h"

#include "compiler/driver/StepTime.h"
#include "core/Error.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

using namespace ds;
using namespace ds::driver;

namespace {

constexpr double worthOrder = 0.01; // of a step

struct Tried {
  CompileResult result;
  std::optional<StepTime> time; // nothing where a link is unknown
  bool fits = false;
};

bool fits(const plan::proto::Plan &plan) {
  const plan::proto::Machine &machine = plan.machine();
  return std::ranges::all_of(plan.roles(), [&](const plan::proto::Role &role) {
    uint64_t device = machine.reserve(), host = 0;
    for (const plan::proto::Arena &arena : role.arenas()) {
      device += arena.space() == "device" ? arena.bytes() : 0;
      host += arena.space() == "host" ? arena.bytes() : 0;
    }
    return (machine.device_memory() == 0 || device <= machine.device_memory()) &&
           (machine.host_memory() == 0 || host <= machine.host_memory());
  });
}

Tried tryOut(CompileRequest request, bool byLayer,
             const std::function<CompileResult(const CompileRequest &)> &compileOne) {
  request.overrides.byLayer = byLayer;
  request.emit = Emit::PlanFile;
  Tried tried{.result = compileOne(request), .time = {}};
  tried.time = stepTime(tried.result.plan);
  tried.fits = fits(tried.result.plan);
  return tried;
}

std::string percent(double share) { return std::to_string(std::lround(100 * share)) + " %"; }

} // namespace

CompileResult ds::driver::compileShortest(const CompileRequest &request,
                                          const std::function<CompileResult(const CompileRequest &)> &compileOne) {
  std::optional<Tried> layers;
  std::string why;
  try {
    layers = tryOut(request, true, compileOne);
  } catch (const Error &error) { // the other order may do what this one cannot
    why = std::string("by layer there is no plan: ") + error.what();
  }
  Tried plain = tryOut(request, false, compileOne);
  bool byLayer = false;
  if (layers && layers->fits != plain.fits) {
    byLayer = layers->fits;
    why = "the other order needs more memory than there is";
  } else if (layers && !(layers->time && plain.time))
    why = "the machine file does not say how fast links are, so that nothing says how long a step takes";
  else if (layers) {
    const double gain = 1 - layers->time->step / plain.time->step;
    byLayer = gain >= worthOrder;
    why = byLayer     ? "its step is " + percent(gain) + " shorter than with one micro-batch after another"
          : gain >= 0 ? "by layer a step would be " + percent(gain) + " shorter, which is too little"
                      : "by layer a step would take " + percent(-gain) + " longer";
  }
  CompileResult chosen = byLayer ? std::move(layers->result) : std::move(plain.result);
  if (request.emit != Emit::PlanFile) {
    CompileRequest again = request;
    again.overrides.byLayer = byLayer;
    chosen = compileOne(again);
  }
  chosen.autos.push_back({.path = "deepstatic.pipeline.schedule",
                          .valueJson = byLayer ? "\"accumulate-by-layer\"" : "\"1f1b\"",
                          .why = why});
  return chosen;
}
