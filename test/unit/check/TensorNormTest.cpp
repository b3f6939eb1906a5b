//===- TensorNormTest.cpp - the norm of gradients of which ranks have parts --===//
#include "test/unit/check/MeshPlan.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace ds::check::meshes {
namespace {

/// The plan on a mesh that takes the norm of its gradients: squares of the parts that ranks have of w and v come
/// together, those of g are the same on all.
class NormPlan : public MeshPlan {
public:
  NormPlan() {
    const NormReference reference(builder);
    square("w", dw, squares[0]);
    square("v", dv, squares[1]);
    square("g", dg, squares[2]);
    proto::Command &gather =
        named("gather squares", builder.collective(update, compute, Collective::ALL_GATHER, squares[0], all[0]));
    gather.mutable_collective()->set_communicator(overTensor);
    *gather.mutable_collective()->add_parts() = part(squares[1], all[1]);
    proto::Command &norm = named(
        "norm", builder.kernel(update, compute, "global_norm", "rrrw", {all[0], all[1], squares[2], f64("norm", {})}));
    proto::Integers &blocks = *attribute(norm, "blocks").mutable_integers();
    for (int i = 0; i < 3; ++i)
      blocks.add_values(1024);
    reference.describe(norm, "norm");
  }

  /// What the norm reads of the n-th gradient is another tensor.
  void readInstead(int operand, const Tensor &other) {
    *commandNamed("norm").mutable_kernel()->mutable_operands(operand) = operandOf(other, proto::Operand::READ);
  }
  proto::CollectiveCommand &gather() { return *commandNamed("gather squares").mutable_collective(); }
  static proto::CollectivePart part(const Tensor &from, const Tensor &to) {
    proto::CollectivePart part;
    *part.mutable_source() = operandOf(from, proto::Operand::READ);
    *part.mutable_target() = operandOf(to, proto::Operand::WRITE);
    return part;
  }
  Tensor f64(const std::string &name, const Shape &shape) {
    return builder.tensor(name, DType::F64, shape, proto::Buffer::CALL);
  }

  Tensor squares[3] = {f64("squares of w's part", {1}), f64("squares of v's part", {1}), f64("squares of g", {1})};
  Tensor all[2] = {f64("squares of w's parts", {2}), f64("squares of v's parts", {2})};

private:
  struct NormReference : ReferenceBuilder {
    explicit NormReference(PlanBuilder &b) : ReferenceBuilder(b) {
      beginFunction("update");
      const Shape shapes[] = {{width, hidden}, {hidden, width}, {width}};
      const std::string names[] = {"w", "v", "g"};
      for (size_t i = 0; i < 3; ++i) {
        op("gradient " + names[i], "train.read", {}, {names[i] + "::gradient"}, shapes[i]);
        op("squares " + names[i], "train.block_sum_squares", {"gradient " + names[i]}, {}, {1}, proto::DTYPE_F64);
      }
      op("norm", "train.global_norm", {"squares w", "squares v", "squares g"}, {}, {}, proto::DTYPE_F64);
    }
  };

  void square(const std::string &name, const Tensor &gradient, const Tensor &to) {
    proto::Command &sums =
        named("squares " + name, builder.kernel(update, compute, "block_sum_squares", "rw", {gradient, to}));
    attribute(sums, "block").set_integer(1024);
  }
};

/// The same with ZeRO stage 2 for w: along data each rank sums up, squares and updates its slice of a bucket that has
/// the rank's part along tensor. Squares of slices come together first.
class SharedNormPlan : public NormPlan {
public:
  SharedNormPlan() {
    replace(w, builder.bucketTensor(builder.bucket("w", {0}, 1024), /*shard=*/false));
    replace(dw, builder.tensor("a slice of w::gradient", DType::F32, {slice}, proto::Buffer::STEP));
    replace(dwTerm, builder.tensor("w::gradient of this rank", DType::F32, {elements}, proto::Buffer::CALL));
    for (const Tensor &sums : {dw, dwTerm})
      builder.role().mutable_buffers(int(sums.buffer))->set_category(proto::Buffer::GRADIENTS);
    *builder.role().mutable_routines(int(begin))->mutable_commands(1)->mutable_fill()->mutable_target() =
        operandOf({dw.buffer, DType::F32, {slice}}, proto::Operand::WRITE);
    reduceSlices();
    squareSlices();
    proto::CollectiveCommand &gather =
        *builder
             .collective(update, compute, Collective::ALL_GATHER, {w.buffer, DType::F32, {slice}},
                         {w.buffer, DType::F32, {elements}})
             .mutable_collective();
    own(*gather.mutable_parts(0)->mutable_source());
  }

  static constexpr int64_t ranks = 2, elements = 2048, slice = elements / ranks;
  Tensor ofSlice = f64("squares of a slice", {slice / 1024});
  Tensor ofSlices = f64("squares of all slices", {elements / 1024});

private:
  /// Another buffer in place of one.
  void replace(const Tensor &old, const Tensor &by) {
    auto &buffers = *builder.role().mutable_buffers();
    buffers[int(old.buffer)] = buffers[int(by.buffer)];
    buffers.RemoveLast();
  }
  static void own(proto::Operand &operand) {
    operand.mutable_shape()->Clear();
    operand.add_shape(slice);
    operand.set_rank_stride(uint64_t(slice) * sizeof(float));
    operand.set_communicator(overData);
  }
  void reduceSlices() {
    const auto [routine, zeros] = makeRoom("dh", 1);
    proto::Command &fill = *builder.role().mutable_routines(int(routine))->mutable_commands(int(zeros));
    fill.clear_kernel();
    fill.clear_reference();
    *fill.mutable_fill()->mutable_target() = operandOf({dwTerm.buffer, DType::F32, {elements}}, proto::Operand::WRITE);
    proto::CollectiveCommand &sum = *commandNamed("accumulate w").mutable_collective();
    sum.set_kind(Collective::REDUCE_SCATTER);
    proto::CollectivePart &all = *sum.mutable_parts(0);
    all.mutable_source()->mutable_shape()->Clear();
    all.mutable_source()->add_shape(elements);
    all.mutable_target()->mutable_shape()->Clear();
    all.mutable_target()->add_shape(slice);
    const Tensor scratch = builder.tensor("scratch", DType::U8, {elements * 4}, proto::Buffer::CALL);
    *all.mutable_scratch() = operandOf(scratch, proto::Operand::SCRATCH);
    proto::KernelCommand &sgd = *commandNamed("sgd w").mutable_kernel();
    own(*sgd.mutable_operands(0));
    sgd.mutable_operands(1)->mutable_shape()->Clear();
    sgd.mutable_operands(1)->add_shape(slice);
  }
  void squareSlices() {
    proto::KernelCommand &sums = *commandNamed("squares w").mutable_kernel();
    sums.mutable_operands(0)->mutable_shape()->Clear();
    sums.mutable_operands(0)->add_shape(slice);
    *sums.mutable_operands(1) = operandOf(ofSlice, proto::Operand::WRITE);
    const auto [routine, place] = makeRoom("squares w", 1);
    proto::Command &together = *builder.role().mutable_routines(int(routine))->mutable_commands(int(place));
    together.clear_kernel();
    together.mutable_collective()->set_kind(Collective::ALL_GATHER);
    together.mutable_collective()->set_communicator(overData);
    *together.mutable_collective()->add_parts() = part(ofSlice, ofSlices);
    *gather().mutable_parts(0)->mutable_source() = operandOf({ofSlices.buffer, DType::F64, {1}}, proto::Operand::READ);
  }
};

struct Defect {
  const char *name;
  void (*make)(NormPlan &);
  const char *rule;
  const char *sentence;
};

const Defect defects[] = {
    {"of w one rank's part alone", [](NormPlan &p) { p.readInstead(0, p.squares[0]); }, "meaning",
     "operand 0 holds the squares of parts of w::gradient along axis tensor, but train.global_norm norm takes "
     "train.block_sum_squares squares w"},
    {"of g once a rank",
     [](NormPlan &p) {
       const Tensor twice = p.f64("squares of g, twice", {2});
       *p.gather().add_parts() = NormPlan::part(p.squares[2], twice);
       p.readInstead(2, twice);
     },
     "meaning", "operand 2 is not train.block_sum_squares squares g of the whole gradient"},
    {"v's parts for w's", [](NormPlan &p) { p.readInstead(0, p.all[1]); }, "meaning",
     "counts a part of the gradients twice"},
    {"v's and w's exchanged",
     [](NormPlan &p) {
       p.readInstead(0, p.all[1]);
       p.readInstead(1, p.all[0]);
     },
     "meaning", "operand 0 holds the squares of all parts of v::gradient along axis tensor"},
    {"parts of other micro-batches", [](NormPlan &p) { p.gather().set_communicator(overData); }, "meaning",
     "operand 0 is not train.block_sum_squares squares w of the whole gradient"},
    {"the first rank's, twice",
     [](NormPlan &p) {
       proto::CollectiveCommand &gather = p.gather();
       gather.set_kind(Collective::BROADCAST);
       for (proto::CollectivePart &part : *gather.mutable_parts())
         *part.mutable_target()->mutable_shape() = part.source().shape();
     },
     "value", "parts of which nothing has written"},
};

TEST(TensorNorm, ProvesTheRightPlan) { EXPECT_EQ(NormPlan().verdict(), "proven"); }
TEST(TensorNorm, ProvesSlicesOfParts) { EXPECT_EQ(SharedNormPlan().verdict(), "proven"); }

/// One collective may sum gradients of several parameters.
TEST(TensorNorm, ProvesGradientsThatAreSummedTogether) {
  NormPlan plan;
  const proto::Command v = plan.commandNamed("accumulate v");
  proto::Command &both = plan.commandNamed("accumulate w");
  *both.mutable_collective()->add_parts() = v.collective().parts(0);
  both.add_reference(v.reference(0));
  plan.drop("accumulate v");
  EXPECT_EQ(plan.verdict(), "proven");
}

TEST(TensorNorm, RefusesDefects) {
  for (const Defect &defect : defects) {
    NormPlan plan;
    defect.make(plan);
    const std::string verdict = plan.verdict();
    EXPECT_TRUE(verdict.starts_with(defect.rule)) << defect.name << ": " << verdict;
    EXPECT_NE(verdict.find(defect.sentence), std::string::npos) << defect.name << ": " << verdict;
  }
}

TEST(TensorNorm, RefusesOneSliceOfParts) {
  SharedNormPlan own, padding;
  own.gather().mutable_parts(0)->mutable_source()->set_buffer(own.ofSlice.buffer);
  padding.gather().mutable_parts(0)->mutable_source()->set_byte_offset(sizeof(double));
  for (SharedNormPlan *plan : {&own, &padding}) {
    const std::string verdict = plan->verdict();
    EXPECT_NE(verdict.find("operand 0 is not train.block_sum_squares squares w of the whole gradient"),
              std::string::npos)
        << verdict;
  }
}

} // namespace
} // namespace ds::check::meshes
