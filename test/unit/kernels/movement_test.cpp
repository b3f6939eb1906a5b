// transpose, slice, pad, concat.
#include "test/unit/kernels/Harness.h"

#include <algorithm>
#include <numeric>

namespace ds::kernels::test {

namespace {

constexpr DType movedTypes[] = {DType::Bool, DType::U16, DType::I32, DType::I64, DType::F32, DType::F64};

Shape permuted(const Shape &x, const std::vector<int64_t> &perm) {
  Shape y;
  for (int64_t axis : perm)
    y.push_back(x[size_t(axis)]);
  return y;
}

TEST(Transpose, EveryPermutation) {
  for (const Shape &shape : {Shape{}, Shape{0}, Shape{7}, Shape{3, 5}, Shape{0, 4}, Shape{40, 70}, Shape{2, 3, 4},
                             Shape{2, 33, 34}, Shape{2, 3, 1, 5}, Shape{2, 32, 3, 64}, Shape{2, 1, 3, 2, 4}}) {
    std::vector<int64_t> perm(shape.size());
    std::iota(perm.begin(), perm.end(), 0);
    do {
      for (DType dtype : movedTypes) {
        Random random(shape.size());
        SCOPED_TRACE(toString(shape) + " by " + toString(perm) + " " + std::string(name(dtype)));
        expectMatchesReference("transpose", {random.buffer(dtype, shape), Buffer(type(dtype, permuted(shape, perm)))},
                               {{"perm", perm}}, {1}, {});
      }
    } while (std::next_permutation(perm.begin(), perm.end()));
  }
}

TEST(Transpose, LongRuns) {
  Random random(1);
  expectMatchesReference("transpose",
                         {random.buffer(DType::F32, {3, 2, 65536}), Buffer(type(DType::F32, {2, 3, 65536}))},
                         {{"perm", std::vector<int64_t>{1, 0, 2}}}, {1}, {});
}

TEST(Transpose, RefusesWhatIsNoPermutation) {
  const auto with = [](std::vector<int64_t> perm) {
    return Invocation{"transpose", {type(DType::F32, {2, 3}), type(DType::F32, {3, 2})}, {{"perm", std::move(perm)}}};
  };
  expectRefused(with({1, 1}), "is not a permutation");
  expectRefused(with({1, 2}), "is not a permutation");
  expectRefused(with({-1, 0}), "is not a permutation");
  expectRefused(with({1}), "has 1 entries for rank 2");
  expectRefused(with({0, 1}), "must have shape [2, 3]");
}

TEST(Slice, StartsAndSteps) {
  struct Case {
    Shape x, y;
    std::vector<int64_t> starts, steps;
  };
  for (const Case &c : {Case{{}, {}, {}, {}}, Case{{10}, {3}, {2}, {3}}, Case{{10}, {0}, {10}, {1}},
                        Case{{10}, {1}, {9}, {INT64_MAX}}, Case{{4, 6}, {2, 6}, {1, 0}, {1, 1}},
                        Case{{4, 6}, {4, 2}, {0, 3}, {1, 2}}, Case{{4, 6, 5}, {2, 3, 5}, {0, 0, 0}, {3, 2, 1}},
                        Case{{2, 3, 4, 5, 6}, {1, 3, 2, 5, 3}, {1, 0, 1, 0, 1}, {1, 1, 2, 1, 2}},
                        Case{{0, 3}, {0, 2}, {0, 1}, {1, 1}}, Case{{300, 200}, {300, 64}, {0, 64}, {1, 1}}})
    for (DType dtype : movedTypes) {
      Random random(c.x.size());
      SCOPED_TRACE(toString(c.x) + " from " + toString(c.starts) + " by " + toString(c.steps));
      expectMatchesReference("slice", {random.buffer(dtype, c.x), Buffer(type(dtype, c.y))},
                             {{"starts", c.starts}, {"steps", c.steps}}, {1}, {});
    }
}

TEST(Slice, RefusesWhatLeavesTheTensor) {
  const auto with = [](int64_t start, int64_t step) {
    return Invocation{"slice",
                      {type(DType::F32, {10}), type(DType::F32, {3})},
                      {{"starts", std::vector<int64_t>{start}}, {"steps", std::vector<int64_t>{step}}}};
  };
  expectRefused(with(8, 1), "leave x [10]");
  expectRefused(with(0, 5), "leave x [10]");
  expectRefused(with(0, 0), "leave x [10]");
  expectRefused(with(0, -1), "leave x [10]");
  expectRefused(with(-1, 1), "leave x [10]");
  expectRefused(with(0, INT64_MAX), "leave x [10]");
  expectRefused(with(INT64_MAX, INT64_MAX), "leave x [10]");
  expectRefused(with(INT64_MIN, 1), "leave x [10]");
}

TEST(Pad, LowInteriorAndValue) {
  struct Case {
    Shape x, y;
    std::vector<int64_t> low, interior;
  };
  for (const Case &c :
       {Case{{}, {}, {}, {}}, Case{{3}, {10}, {2}, {2}}, Case{{0}, {5}, {5}, {0}}, Case{{1}, {5}, {4}, {INT64_MAX - 1}},
        Case{{2, 3}, {5, 9}, {1, 1}, {1, 2}}, Case{{2, 3, 4}, {2, 7, 4}, {0, 4, 0}, {0, 0, 0}},
        Case{{2, 0}, {2, 3}, {0, 0}, {0, 0}}, Case{{2, 3, 4, 2, 1}, {3, 3, 9, 2, 2}, {0, 0, 1, 0, 1}, {1, 0, 1, 0, 0}},
        Case{{300, 64}, {300, 200}, {0, 64}, {0, 0}}})
    for (DType dtype : movedTypes) {
      Random random(c.x.size());
      SCOPED_TRACE(toString(c.x) + " at " + toString(c.low) + " interior " + toString(c.interior));
      expectMatchesReference("pad", {random.buffer(dtype, c.x), Buffer(type(dtype, c.y))},
                             {{"low", c.low}, {"interior", c.interior}, {"value", 1.0}}, {1}, {});
    }
}

TEST(Pad, RefusesWhatLeavesTheResult) {
  const auto with = [](int64_t low, int64_t interior) {
    return Invocation{
        "pad",
        {type(DType::F32, {3}), type(DType::F32, {10})},
        {{"low", std::vector<int64_t>{low}}, {"interior", std::vector<int64_t>{interior}}, {"value", 0.0}}};
  };
  expectRefused(with(8, 0), "leaves y [10]");
  expectRefused(with(-1, 0), "leaves y [10]");
  expectRefused(with(0, 4), "leaves y [10]");
  expectRefused(with(0, -1), "must not be negative");
  expectRefused(with(0, INT64_MAX), "must not be negative");
  expectRefused(with(INT64_MAX, INT64_MAX - 1), "leaves y [10]");
}

TEST(Concat, EveryAxis) {
  struct Case {
    std::vector<Shape> inputs;
    int64_t axis;
    Shape y;
  };
  for (const Case &c : {Case{{{3}}, 0, {3}}, Case{{{3}, {0}, {4}}, 0, {7}}, Case{{{2, 3}, {4, 3}}, 0, {6, 3}},
                        Case{{{2, 3}, {2, 1}}, 1, {2, 4}}, Case{{{2, 3}, {2, 1}}, -1, {2, 4}},
                        Case{{{2, 3, 2, 2, 5}, {2, 3, 4, 2, 5}}, 2, {2, 3, 6, 2, 5}}, Case{{{0, 3}, {0, 2}}, 1, {0, 5}},
                        Case{{{400, 64}, {400, 100}}, 1, {400, 164}}})
    for (DType dtype : movedTypes) {
      Random random(c.inputs.size());
      SCOPED_TRACE("to " + toString(c.y));
      std::vector<Buffer> operands;
      for (const Shape &shape : c.inputs)
        operands.push_back(random.buffer(dtype, shape));
      operands.emplace_back(type(dtype, c.y));
      expectMatchesReference("concat", operands, {{"axis", c.axis}}, {c.inputs.size()}, {});
    }
}

TEST(Concat, RefusesShapesThatDoNotFit) {
  const auto with = [](Shape a, Shape b, Shape y, int64_t axis) {
    return Invocation{"concat",
                      {type(DType::F32, std::move(a)), type(DType::F32, std::move(b)), type(DType::F32, std::move(y))},
                      {{"axis", axis}}};
  };
  expectRefused(with({2, 3}, {2, 3}, {2, 6}, 2), "axis 2 is out of range for rank 2");
  expectRefused(with({2, 3}, {2, 3}, {2, 6}, INT64_MIN), "is out of range");
  expectRefused(with({2, 3}, {2, 3}, {2, 5}, 1), "more than y's 5 elements");
  expectRefused(with({2, 3}, {2, 3}, {2, 7}, 1), "must have shape [2, 6]");
  expectRefused(with({2, 3}, {3, 3}, {2, 6}, 1), "must have shape [2, 3]");
  expectRefused(with({2, 3}, {3}, {2, 6}, 1), "differ in rank");
  expectRefused(with({}, {}, {}, 0), "axis 0 is out of range for rank 0");
}

} // namespace

} // namespace ds::kernels::test
