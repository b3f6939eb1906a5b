//===- OutlineFragments.cpp - cut the step into fragments -------------------===//
//
// 1. Pieces: forwards by stage, then backwards from the last stage to the first, each with its weight gradients
//    behind it if the schedule splits these off (zero bubble, arXiv 2401.10241), then the evaluation.
// 2. An op goes to the piece of its stage and phase. What costs nothing (views, constants, reads of state) is
//    repeated wherever it is read.
// 3. A result that another piece reads becomes a dist.value. Where that piece is on another rank it becomes part of
//    a message, one for each pair of a piece and a stage, sent at the end of the piece and received ahead of the
//    first one that needs it. Several stages of a rank read one copy, which comes with the first one's message.
// 4. There is one update a rank: of the parameters that its stages read.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/BucketIndex.h"
#include "compiler/analysis/ForwardChain.h"
#include "compiler/analysis/Stages.h"
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/pipeline/Passes.h"
#include "dialects/Dist/Mesh.h"
#include "dialects/Train/LocationName.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

#include <map>
#include <set>

namespace ds {
#define GEN_PASS_DEF_OUTLINEFRAGMENTS
#include "compiler/passes/pipeline/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// A symbol for a value of this name: fragments and metrics keep theirs.
std::string valueName(StringRef name) {
  return (llvm::is_contained(reservedNames, name) ? name + "::value" : name).str();
}

/// What a stored value is called: the ONNX name, or "value".
std::string nameOf(Location location) {
  std::string name = train::locationName(location);
  return name.empty() ? "value" : valueName(name);
}

/// Ops that one fragment runs: those of a phase of a stage; of the update, of a rank along the pipeline.
struct Piece {
  dist::Phase phase;
  int64_t stage;
  SmallVector<Operation *> ops;
};

struct OutlineFragments : ds::impl::OutlineFragmentsBase<OutlineFragments> {
  using OutlineFragmentsBase::OutlineFragmentsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    auto microbatch = symbols.lookup<func::FuncOp>("microbatch"), update = symbols.lookup<func::FuncOp>("update"),
         evaluate = symbols.lookup<func::FuncOp>("evaluate");
    if (!microbatch || !update || !evaluate) {
      module.emitError("needs @microbatch, @update and @evaluate; see ds-verify-train-form");
      return signalPassFailure();
    }
    for (func::FuncOp function : {microbatch, update, evaluate})
      if (!function.getBody().hasOneBlock() || (function != microbatch && function.getNumArguments() != 0 &&
                                                function.getArgumentTypes() != microbatch.getArgumentTypes())) {
        InFlightDiagnostic error =
            function.emitError("must have one block and @microbatch's arguments, or none; see ds-verify-train-form");
        if (function != microbatch)
          error.attachNote(microbatch.getLoc()) << "@microbatch stands here";
        return signalPassFailure();
      }
    dist::MeshOp mesh = dist::requireMesh(module);
    if (!mesh)
      return signalPassFailure();
    ranks_ = dist::axisSize(mesh, dist::pipeAxis);
    symbols_ = &symbols;
    builder_ = OpBuilder::atBlockEnd(module.getBody());
    countStages({microbatch, evaluate});
    if (stages_ % ranks_ != 0) {
      InFlightDiagnostic error = module.emitError() << "has ops of " << stages_ << " stages, which " << ranks_
                                                    << " ranks cannot share equally";
      error.attachNote(mesh.getLoc()) << "mesh declared here";
      return signalPassFailure();
    }
    // Names that fragments and the passes behind this one look for are theirs.
    for (func::FuncOp function : {update, evaluate})
      (void)symbols.rename(function, (function.getSymName() + "::outlined").str());
    std::vector<Piece> training = piecesOf(microbatch), evaluation = evaluationPieces(evaluate);
    makeInputs(microbatch, training, evaluation);
    for (Operation &op : microbatch.getBody().front())
      for (StringAttr name : train::writtenVariables(&op))
        written_.insert(name);
    outlineAll(microbatch, training);
    outlineUpdates(update, evaluation);
    outlineAll(evaluate, evaluation);
    for (func::FuncOp function : {microbatch, update, evaluate})
      symbols.erase(function);
  }

private:
  //===-- pieces ----------------------------------------------------------------===//

  void countStages(ArrayRef<func::FuncOp> functions) {
    for (func::FuncOp function : functions)
      for (Operation &op : function.getBody().front())
        stages_ = std::max(stages_, stageOf(&op).value_or(0) + 1);
  }

  /// The stage that runs `op`; nothing for what every piece repeats that needs it.
  std::optional<int64_t> placeOf(Operation *op) const { return stages_ == 1 ? 0 : stageOf(op); }

  /// Forwards by stage, then backwards from the last stage to the first, each with its weight gradients behind it if
  /// they are split off.
  std::vector<Piece> piecesOf(func::FuncOp function) const {
    std::vector<Piece> pieces;
    for (int64_t stage = 0; stage < stages_; ++stage)
      pieces.push_back({dist::Phase::Forward, stage, {}});
    const llvm::DenseSet<Operation *> weights =
        splitWeights ? weightGradients(function) : llvm::DenseSet<Operation *>();
    const int64_t behind = splitWeights ? 2 : 1;
    for (int64_t stage = stages_; stage-- > 0;) {
      pieces.push_back({dist::Phase::Backward, stage, {}});
      if (splitWeights)
        pieces.push_back({dist::Phase::Weight, stage, {}});
    }
    bool backward = false;
    for (Operation &op : function.getBody().front().without_terminator()) {
      backward |= isa<train::LossGradientOp>(op);
      const std::optional<int64_t> stage = placeOf(&op);
      if (!stage)
        continue;
      const int64_t first = stages_ + (stages_ - 1 - *stage) * behind; // the stage's backward
      pieces[size_t(backward ? first + weights.contains(&op) : *stage)].ops.push_back(&op);
    }
    return pieces;
  }

  std::vector<Piece> evaluationPieces(func::FuncOp function) const {
    std::vector<Piece> pieces;
    for (int64_t stage = 0; stage < stages_; ++stage)
      pieces.push_back({dist::Phase::Evaluate, stage, {}});
    for (Operation &op : function.getBody().front().without_terminator())
      if (const std::optional<int64_t> stage = placeOf(&op))
        pieces[size_t(*stage)].ops.push_back(&op);
    return pieces;
  }

  /// Ops of the backward that nothing but gradients of their own stage's parameters comes of.
  llvm::DenseSet<Operation *> weightGradients(func::FuncOp function) const {
    llvm::DenseSet<Operation *> weights;
    for (Operation &op : llvm::reverse(function.getBody().front().without_terminator())) {
      if (isa<train::LossGradientOp>(op))
        break;
      const bool ends = isa<train::AccumulateOp>(op);
      if (ends || (isMemoryEffectFree(&op) && !op.use_empty() && llvm::all_of(op.getUsers(), [&](Operation *user) {
                     return weights.contains(user) && placeOf(user) == placeOf(&op);
                   })))
        weights.insert(&op);
    }
    return weights;
  }

  //===-- inputs ----------------------------------------------------------------===//

  /// A dist.value per graph input and stage that needs it, and the fragments that feed them.
  void makeInputs(func::FuncOp function, ArrayRef<Piece> training, ArrayRef<Piece> evaluation) {
    std::vector<llvm::DenseSet<unsigned>> needed(size_t(stages_), llvm::DenseSet<unsigned>{});
    for (ArrayRef<Piece> pieces : {training, evaluation})
      for (const Piece &piece : pieces)
        for (Operation *op : piece.ops)
          noteInputs(op, needed[size_t(piece.stage)]);
    inputs_.resize(size_t(stages_));
    for (int64_t stage = 0; stage < stages_; ++stage) {
      SmallVector<dist::ValueOp> values;
      inputs_[size_t(stage)].resize(function.getNumArguments());
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        if (stages_ == 1 || needed[size_t(stage)].contains(i))
          values.push_back(makeInput(function, i, stage));
      if (values.empty() && stages_ > 1)
        continue;
      OpBuilder::InsertionGuard guard(builder_);
      makeFragment(function.getLoc(), numberedName("feed", stage, stages_), dist::Phase::Feed, stage);
      for (dist::ValueOp value : values)
        dist::FeedOp::create(builder_, value.getLoc(), value.getSymNameAttr());
    }
  }

  void noteInputs(Operation *op, llvm::DenseSet<unsigned> &needed) const {
    for (Value operand : op->getOperands()) {
      if (auto argument = dyn_cast<BlockArgument>(operand))
        needed.insert(argument.getArgNumber());
      else if (Operation *producer = operand.getDefiningOp(); isRepeated(producer))
        noteInputs(producer, needed);
    }
  }

  dist::ValueOp makeInput(func::FuncOp function, unsigned i, int64_t stage) {
    auto input = function.getArgAttrOfType<StringAttr>(i, inputAttribute);
    std::string name = input ? input.str() : "input" + std::to_string(i);
    auto value =
        dist::ValueOp::create(builder_, function.getArgument(i).getLoc(), numberedName(valueName(name), stage, stages_),
                              cast<RankedTensorType>(function.getArgument(i).getType()), builder_.getStringAttr(name));
    for (StringRef about : {tokensAttribute, limitAttribute, ignoredAttribute})
      if (Attribute attribute = function.getArgAttr(i, about))
        value->setAttr(about, attribute);
    symbols_->insert(value);
    inputs_[size_t(stage)][i] = value.getSymNameAttr();
    return value;
  }

  //===-- what passes between pieces ----------------------------------------------===//

  /// A value that is repeated where it is needed: it costs nothing (a view, a constant, a read of a variable that stays
  /// as it is), or no stage has it for its own.
  bool isRepeated(Operation *op) const {
    if (auto read = dyn_cast<train::ReadOp>(op))
      return !written_.contains(read.getVariableAttr().getAttr());
    return isa<train::ReshapeOp, train::ConstantOp, train::LossGradientOp>(op) || !placeOf(op);
  }

  /// An empty fragment of a stage or, of an update, a rank; the builder is left inside it.
  dist::FragmentOp makeFragment(Location location, StringRef name, dist::Phase phase, int64_t number,
                                FlatSymbolRefAttr aheadOf = {}) {
    builder_.setInsertionPointToEnd(getOperation().getBody());
    const bool ofRank = dist::FragmentOp::isOfRank(phase);
    auto fragment =
        dist::FragmentOp::create(builder_, location, name, phase, ofRank ? std::nullopt : std::optional(number),
                                 ofRank ? std::optional(number) : std::nullopt, aheadOf);
    symbols_->insert(fragment);
    builder_.setInsertionPointToStart(&fragment.getBody().emplaceBlock());
    return fragment;
  }

  /// A message: what a piece makes and a stage of another rank needs.
  struct Message {
    dist::ChannelOp channel;
    size_t receiver; // the first piece that needs a value of it
    SmallVector<Value> values;
  };

  void outlineAll(func::FuncOp function, ArrayRef<Piece> pieces) {
    stored_.clear();
    nameStored(function, pieces);
    for (auto [index, piece] : llvm::enumerate(pieces)) {
      makeReceives(pieces, index);
      outline(function, piece, stages_, messagesFrom(index));
    }
    messages_.clear();
  }

  /// Names what pieces read of others, in the order in which it is computed, and the messages between ranks.
  void nameStored(func::FuncOp function, ArrayRef<Piece> pieces) {
    llvm::DenseMap<Operation *, size_t> pieceOf;
    for (auto [index, piece] : llvm::enumerate(pieces))
      for (Operation *op : piece.ops)
        pieceOf[op] = index;
    llvm::DenseMap<Value, SmallVector<size_t, 2>> readers; // other pieces, ascending
    for (auto [index, piece] : llvm::enumerate(pieces)) {
      std::function<void(Value)> need = [&, index = index](Value value) {
        Operation *op = value.getDefiningOp();
        if (!op)
          return;
        if (isRepeated(op)) {
          llvm::for_each(op->getOperands(), need);
          return;
        }
        if (const auto made = pieceOf.find(op); made != pieceOf.end() && made->second != index)
          if (auto &list = readers[value]; list.empty() || list.back() != index)
            list.push_back(index);
      };
      for (Operation *op : piece.ops) // bodies of fused ops are isolated: operands are all they read
        llvm::for_each(op->getOperands(), need);
    }
    builder_.setInsertionPoint(getOperation().getBody(), getOperation().getBody()->end());
    for (Operation &op : function.getBody().front())
      for (Value result : op.getResults())
        if (const auto it = readers.find(result); it != readers.end()) {
          const size_t maker = pieceOf.lookup(&op);
          auto value = dist::ValueOp::create(builder_, result.getLoc(), nameOf(result.getLoc()),
                                             cast<RankedTensorType>(result.getType()), StringAttr());
          symbols_->insert(value); // makes the name unique
          stored_[result] = value.getSymNameAttr();
          std::set<int64_t> holders{rankOf(pieces[maker])}; // ranks that have the value
          for (const size_t reader : it->second)
            if (holders.insert(rankOf(pieces[reader])).second)
              addToMessage(pieces, maker, reader, result);
        }
  }

  int64_t rankOf(const Piece &piece) const { return piece.stage % ranks_; }

  /// `value` goes from the piece that makes it to its first reader on another rank.
  void addToMessage(ArrayRef<Piece> pieces, size_t from, size_t reader, Value value) {
    const Piece &sender = pieces[from], &receiver = pieces[reader];
    Message &message = messages_[{from, receiver.stage}];
    if (!message.channel) {
      const std::string name =
          (stringifyPhase(sender.phase) + "::" + Twine(sender.stage) + "-" + Twine(receiver.stage)).str();
      message.receiver = reader;
      message.channel =
          dist::ChannelOp::create(builder_, value.getLoc(), name, dist::pipeAxis, rankOf(sender), rankOf(receiver));
      symbols_->insert(message.channel);
    }
    message.receiver = std::min(message.receiver, reader);
    message.values.push_back(value);
  }

  /// In the order in which stages need them.
  SmallVector<Message *> messagesFrom(size_t piece) {
    SmallVector<Message *> messages;
    for (auto &[key, message] : messages_)
      if (key.first == piece)
        messages.push_back(&message);
    llvm::stable_sort(messages, [](const Message *a, const Message *b) { return a->receiver < b->receiver; });
    return messages;
  }

  /// The fragment that receives what a piece is the first of its stage to need.
  void makeReceives(ArrayRef<Piece> pieces, size_t index) {
    const Piece &piece = pieces[index];
    const std::string served = numberedName(stringifyPhase(piece.phase), piece.stage, stages_);
    dist::FragmentOp fragment;
    for (auto &[key, message] : messages_) {
      if (message.receiver != index)
        continue;
      if (!fragment)
        fragment = makeFragment(getOperation().getLoc(), "receive::" + served, dist::Phase::Receive, piece.stage,
                                FlatSymbolRefAttr::get(&getContext(), served));
      SmallVector<Attribute> values;
      for (Value value : message.values)
        values.push_back(FlatSymbolRefAttr::get(stored_.lookup(value)));
      dist::ReceiveOp::create(builder_, message.channel.getLoc(), builder_.getArrayAttr(values),
                              message.channel.getSymName());
    }
  }

  /// Clones a piece, one of `count` of its phase, into a new fragment; loads what others computed, stores what others
  /// need, and sends it.
  void outline(func::FuncOp function, const Piece &piece, int64_t count, ArrayRef<Message *> messages) {
    makeFragment(function.getLoc(), numberedName(stringifyPhase(piece.phase), piece.stage, count), piece.phase,
                 piece.stage);
    IRMapping mapping;
    std::function<void(Value)> provide = [&](Value value) {
      if (mapping.contains(value))
        return;
      if (auto argument = dyn_cast<BlockArgument>(value)) {
        mapping.map(value, load(inputs_[size_t(piece.stage)][argument.getArgNumber()], value));
      } else if (StringAttr stored = stored_.lookup(value)) {
        mapping.map(value, load(stored, value));
      } else {
        llvm::for_each(value.getDefiningOp()->getOperands(), provide);
        builder_.clone(*value.getDefiningOp(), mapping)->removeAttr(pipelineStageAttribute);
      }
    };
    for (Operation *op : piece.ops) {
      llvm::for_each(op->getOperands(), provide);
      Operation *clone = builder_.clone(*op, mapping);
      clone->removeAttr(pipelineStageAttribute);
      for (auto [result, cloned] : llvm::zip(op->getResults(), clone->getResults()))
        if (StringAttr stored = stored_.lookup(result))
          dist::StoreOp::create(builder_, result.getLoc(), cloned, FlatSymbolRefAttr::get(stored));
    }
    for (Message *message : messages) {
      SmallVector<Value> tensors;
      for (Value value : message->values)
        tensors.push_back(mapping.lookup(value));
      dist::SendOp::create(builder_, message->channel.getLoc(), tensors, message->channel.getSymName());
    }
  }

  //===-- updates -----------------------------------------------------------------===//

  /// One update a rank: of the parameters that its stages read, be it in an evaluation, and of what every rank counts
  /// for itself. The norm is of all gradients; ds-join-stages brings what a rank does not have.
  void outlineUpdates(func::FuncOp function, ArrayRef<Piece> evaluation) {
    stored_.clear();
    for (int64_t rank = 0; rank < ranks_; ++rank) {
      llvm::DenseSet<StringAttr> named; // symbols, by this rank's fragments
      const auto noteNames = [&](Operation *op) {
        for (NamedAttribute attribute : op->getAttrDictionary())
          if (auto name = dyn_cast<FlatSymbolRefAttr>(attribute.getValue()))
            named.insert(name.getAttr());
      };
      for (auto fragment : getOperation().getOps<dist::FragmentOp>())
        if (fragment.getStage() && int64_t(*fragment.getStage()) % ranks_ == rank)
          for (Operation &op : fragment.getBody().front())
            noteNames(&op);
      for (const Piece &piece : evaluation)
        for (Operation *op : piece.ops)
          for (Value operand : op->getOperands())
            if (auto read = underView(operand).getDefiningOp<train::ReadOp>(); read && rankOf(piece) == rank)
              noteNames(read);
      Piece update{dist::Phase::Update, rank, {}};
      for (Operation &op : function.getBody().front().without_terminator())
        if (ranks_ == 1 || isOfRank(&op, named))
          update.ops.push_back(&op);
      outline(function, update, ranks_, {});
    }
  }

  /// Whether a rank whose fragments name `named` runs this op of the update: not that of a parameter, nor what becomes
  /// its state, nor the average of a loss, that others have.
  bool isOfRank(Operation *op, const llvm::DenseSet<StringAttr> &named) const {
    if (const std::optional<StringAttr> parameter = updatedParameter(op))
      return named.contains(*parameter);
    for (Operation *user : op->getUsers())
      if (isOfRank(user, named))
        return true;
    if (!op->use_empty())
      return false;
    auto store = dyn_cast<train::StoreOp>(op);
    if (!store)
      return true;
    auto variable = symbols_->lookup<train::VariableOp>(store.getVariable());
    if (variable.getOf()) // a gradient that the next step's update reads
      return named.contains(variable.getOfAttr().getAttr());
    return store.getVariable() != lossMetric || named.contains(store.getVariableAttr().getAttr());
  }

  Value load(StringAttr name, Value like) {
    return dist::LoadOp::create(builder_, like.getLoc(), like.getType(), FlatSymbolRefAttr::get(name));
  }

  SymbolTable *symbols_ = nullptr;
  OpBuilder builder_{static_cast<MLIRContext *>(nullptr)};
  int64_t stages_ = 1, ranks_ = 1;
  std::vector<SmallVector<StringAttr>> inputs_; // by stage and argument; null where a stage does not need one
  llvm::DenseMap<Value, StringAttr> stored_;
  std::map<std::pair<size_t, int64_t>, Message> messages_; // by piece that sends and stage that receives
  llvm::DenseSet<StringAttr> written_;                     // variables, by @microbatch
};

} // namespace
