//===- State.cpp - whether a plan carries what its model's forward changes --===//
#include "compiler/sources/State.h"

#include "compiler/sources/ReferenceOps.h"
#include "core/Error.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace ds::sources {
namespace {

namespace proto = plan::proto;

/// What a value is made of, under what moves and converts its elements alone: the name of the op, or of the tensor.
std::string originOf(const proto::Plan &plan, uint32_t value) {
  constexpr std::array<std::string_view, 3> views = {"train.cast", "train.reshape", "train.broadcast"};
  const proto::ReferenceOp *maker = makerOf(plan, value);
  while (maker != nullptr && std::ranges::count(views, maker->op()) > 0) {
    value = maker->operands(0);
    maker = makerOf(plan, value);
  }
  if (maker == nullptr)
    return plan.reference().values(int(value)).name();
  return maker->op() == "train.read" ? plan.variables(int(maker->variables(0))).name() : maker->name();
}

} // namespace

std::optional<Claim> requireState(const proto::Plan &plan, const ModelFile &model) {
  std::map<std::string, const proto::ReferenceOp *> stores; // by buffer
  for (const proto::ReferenceOp *op : opsOf(plan, "train.store"))
    if (const proto::Variable &variable = plan.variables(int(op->variables(0)));
        variable.kind() == proto::Variable::BUFFER &&
        (!stores.try_emplace(variable.name(), op).second || op->function() != "microbatch"))
      throw Error("the plan stores in " + variable.name() + " in @" + op->function() +
                  ", where no forward of a step does that, or twice");
  for (const auto &[buffer, made] : model.state) {
    const auto store = stores.find(buffer);
    if (store == stores.end())
      throw Error("the model's forward changes " + buffer + " (deepstatic.state), but the plan stores nothing there");
    if (const std::string origin = originOf(plan, store->second->operands(0)); origin != made.origin)
      throw Error("the plan stores in " + buffer + " what '" + origin +
                  "' makes, but the model's forward makes it by '" + made.origin + "' (deepstatic.state)");
  }
  for (const auto &[buffer, store] : stores)
    if (!model.state.contains(buffer))
      throw Error("the plan stores in " + buffer + ", which the model's forward does not change (deepstatic.state)");
  if (stores.empty())
    return std::nullopt;
  return Claim{"state", std::to_string(stores.size()) +
                            " buffers get from each micro-batch what the model's forward makes of them"};
}

} // namespace ds::sources
