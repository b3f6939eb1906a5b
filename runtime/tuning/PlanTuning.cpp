#include "runtime/tuning/PlanTuning.h"

#include "core/Error.h"
#include "kernels/KernelTable.h"
#include "runtime/device/cuda/GpuVerdicts.h"
#include "runtime/plan/run/Invocations.h"

#include <algorithm>

namespace ds::runtime {

namespace proto = plan::proto;

namespace {

void addProducts(std::vector<TunedProduct> &products, proto::Role &role) {
  for (proto::Routine &routine : *role.mutable_routines())
    for (proto::Command &command : *routine.mutable_commands()) {
      if (!command.has_kernel() || !kernels::isProduct(command.kernel().kernel()) ||
          role.queues(int(command.queue())).kind() == proto::Queue::HOST)
        continue;
      kernels::Invocation call = plan::invocationOf(command.kernel());
      auto known = std::ranges::find(products, call, &TunedProduct::call);
      if (known == products.end())
        known = products.insert(known, {.call = std::move(call), .commands = {}, .tuned = {}});
      known->commands.push_back(command.mutable_kernel());
    }
}

/// Into the plan, each algorithm once.
void store(proto::Plan &plan, const std::vector<TunedProduct> &products, const CudaInfo &info) {
  proto::Tuning tuning;
  tuning.set_gpu(info.gpus.at(0).name);
  tuning.set_cublaslt(info.cublasLt);
  for (const TunedProduct &product : products) {
    if (product.tuned.algorithm.empty())
      continue;
    const auto known = std::ranges::find(tuning.algorithms(), product.tuned.algorithm);
    const auto index = uint32_t(known - tuning.algorithms().begin());
    if (known == tuning.algorithms().end())
      tuning.add_algorithms(product.tuned.algorithm);
    for (proto::KernelCommand *command : product.commands)
      command->set_algorithm(index);
  }
  if (tuning.algorithms_size() > 0)
    *plan.mutable_tuning() = std::move(tuning);
}

} // namespace

std::vector<TunedProduct> productsOf(proto::Plan &plan) {
  std::vector<TunedProduct> products;
  for (proto::Role &role : *plan.mutable_roles())
    addProducts(products, role);
  for (proto::Length &length : *plan.mutable_shorter())
    for (proto::Role &role : *length.mutable_roles())
      addProducts(products, role);
  return products;
}

std::vector<TunedProduct> tunePlan(proto::Plan &plan, const CudaLibrary &cuda,
                                   const std::function<void(const TunedProduct &)> &found) {
  const CudaInfo info = cuda.info();
  if (!info.unusable.empty())
    throw Error("--tune times products on a GPU: " + info.unusable);
  if (const std::string refusal = refuseCapability(info.gpus.at(0)); !refusal.empty())
    throw Error("--tune: " + refusal);
  std::vector<TunedProduct> products = productsOf(plan);
  plan.clear_tuning();
  for (TunedProduct &product : products) {
    for (proto::KernelCommand *command : product.commands)
      command->clear_algorithm();
    product.tuned = cuda.tune(product.call);
    found(product);
  }
  store(plan, products, info);
  return products;
}

} // namespace ds::runtime
