//===- Variables.h - the parameters and buffers of a model -------------------===//
#pragma once

#include "compiler/import/Constant.h"
#include "compiler/import/Import.h"
#include "compiler/import/Roles.h"
#include "compiler/import/TrainingInfo.h"
#include "compiler/import/Types.h"
#include "compiler/import/Weights.h"
#include "compiler/import/files/Metadata.h"
#include "core/WeightNames.h"

#include "mlir/IR/Value.h"

#include <deque>
#include <map>
#include <optional>

namespace ds::import {

/// An initializer, or a parameter that the file leaves out.
struct Variable {
  std::string name;
  int onnxType = 0;
  Shape shape;
  const onnx::TensorProto *tensor = nullptr; // null: left out of the file
  std::optional<InlineData> inlined;
  bool parameter = false, trainable = false, persistent = false;
  /// State of a training algorithm that the file brings: updated, but no parameter.
  bool optimizer = false;
  /// What forward makes of it is what the next forward reads.
  bool carried = false;
  /// Small and never trained: folded where its value is needed, or rather than read.
  bool foldable = false;

  std::optional<TensorData> data; // located at first use
  std::optional<Constant> constant;
  mlir::Value read; // the one train.read, null before the first use

  DType dtype() const; // throws Failure for types that training does not support
};

/// All variables of a model by name, in file order.
class Variables {
public:
  /// `outside` are names that the graph reads and only the safetensors file defines, `differentiated` those by which a
  /// Gradient node differentiates. `roles` of initializers are for files that do not say which are parameters.
  Variables(const ScannedModel &model, const Metadata &metadata, const TrainingAlgorithm &algorithm,
            const ImportOptions &options, WeightFiles &files, const std::set<std::string> &outside,
            const std::set<std::string> &differentiated, const std::map<std::string, Role> &roles);

  bool contains(const std::string &name) const { return names_.count(name) != 0; }
  std::deque<Variable> &all() { return variables_; }
  /// A line for each float tensor: name, shape, where it stands in the file, whether it is trained, and why. `used` are
  /// those that the results depend on.
  std::string table(const std::set<std::string> &used) const;
  /// What to do where nothing is trained: which initializers there are to train.
  std::string whatCouldTrain() const;
  /// The elements, read from the file.
  const Constant &constant(Variable &variable);
  /// Where the first value comes from, as an attribute of train.variable.
  mlir::Attribute source(mlir::MLIRContext *context, Variable &variable);
  /// What people should know of how --weights was read, a sentence each, and where `trains`, of what is trained. Throws
  /// Failure where --weights has nothing for the model.
  std::vector<std::string> weightNotes(bool trains) const;
  /// Refuses scales and biases that perhaps were several before equal ones were merged.
  void checkNotMerged() const;

private:
  void addInitializers(const ScannedModel &model);
  void addLeftOut(const onnx::GraphProto &graph);
  void addOutside(const std::set<std::string> &outside);
  void classify(Variable &variable);
  void classifyByAlgorithm(Variable &variable);
  void applyRegexes(const ImportOptions &options);
  void locate(Variable &variable);
  std::vector<std::string> namesOf(const Variable &variable) const;
  std::string nameInWeights(const Variable &variable) const;
  void findNames();
  [[noreturn]] void refuseMissing() const;

  const ScannedModel &model_;
  const Metadata &metadata_;
  const TrainingAlgorithm &algorithm_;
  WeightFiles &files_;
  const std::map<std::string, Role> &roles_;
  const std::string weights_; // what --weights names; empty: nothing
  PrefixRule rule_;           // how its names differ
  std::deque<Variable> variables_;
  std::set<std::string> names_;
  std::set<std::string> decided_; // by --trainable or --frozen
};

} // namespace ds::import
