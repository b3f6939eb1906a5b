//===- ChooseSchedule.cpp - in which order micro-batches go through the model --===//
#include "compiler/driver/ChooseSchedule.h"

#include "core/Error.h"

#include <optional>
#include <string>
#include <utility>

using namespace ds;
using namespace ds::driver;

namespace {

constexpr double worthOrder = 0.01; // of a step

TriedPlan tryOrder(CompileRequest request, bool byLayer, const Planner &plan) {
  request.overrides.byLayer = byLayer;
  return tryPlan(std::move(request), plan);
}

} // namespace

CompileResult ds::driver::compileShortest(const CompileRequest &request, const Planner &compileOne) {
  std::optional<TriedPlan> layers;
  std::string why;
  try {
    layers = tryOrder(request, true, compileOne);
  } catch (const Error &error) { // the other order may do what this one cannot
    why = std::string("by layer there is no plan: ") + error.what();
  }
  TriedPlan plain = tryOrder(request, false, compileOne);
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
