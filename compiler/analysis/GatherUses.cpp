//===- GatherUses.cpp - what is gathered in a fragment, and when it is used ---===//
#include "compiler/analysis/GatherUses.h"

using namespace mlir;
using namespace ds;

/// The bucket that an op makes whole, or null.
static dist::BucketOp gatheredBy(Operation *op, const SymbolTable &symbols) {
  if (auto take = dyn_cast<dist::LoadOp>(op)) {
    auto value = symbols.lookup<dist::ValueOp>(take.getValue());
    return value && value.getBucket() ? symbols.lookup<dist::BucketOp>(*value.getBucket()) : dist::BucketOp();
  }
  auto gather = dyn_cast<dist::AllGatherOp>(op);
  if (!gather || gather.getInto() || gather.getInputs().size() != 1)
    return {};
  auto read = gather.getInputs().front().getDefiningOp<train::ReadOp>();
  auto bucket = read ? symbols.lookup<dist::BucketOp>(read.getVariable()) : dist::BucketOp();
  return bucket && bucket.isSharded() ? bucket : dist::BucketOp();
}

GatherUses::GatherUses(dist::FragmentOp fragment, const SymbolTable &symbols) {
  llvm::DenseMap<Value, size_t> index; // into `gathers`; looked up
  for (Operation &op : fragment.getBody().front()) {
    if (dist::BucketOp bucket = gatheredBy(&op, symbols)) {
      index[op.getResult(0)] = gathers.size();
      gathers.push_back({op.getResult(0), bucket, instants(), -1});
    }
    auto view = dyn_cast<dist::ViewOp>(op);
    const auto known = view ? index.find(view.getInput()) : index.end();
    if (known == index.end())
      continue;
    Gather &gather = gathers[known->second];
    if (gather.last < 0)
      gather.first = instants();
    gather.last = instants();
    used_.push_back(used_.back() + cast<RankedTensorType>(view.getType()).getNumElements());
    live_.push_back(0);
    views.push_back(view);
  }
  for (Gather &gather : gathers)
    occupy(gather.op() ? gather.first : 0, gather.last + 1, gather.elements());
}

bool GatherUses::fits(int64_t begin, int64_t end, int64_t elements, int64_t max) const {
  for (int64_t t = begin; t < end; ++t)
    if (live_[size_t(t)] + elements > max)
      return false;
  return true;
}

void GatherUses::occupy(int64_t begin, int64_t end, int64_t elements) {
  for (int64_t t = begin; t < end; ++t)
    live_[size_t(t)] += elements;
}
