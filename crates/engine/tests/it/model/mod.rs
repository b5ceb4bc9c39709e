//! Random verbs against a simple model: answers, inboxes, deliveries and visibility agree after every step.

mod world;

use posthaste_engine::EngineError;
use posthaste_engine::nouns::{
    Address, AgentId, Audience, Caller, ContactPolicy, ContactState, ConversationId, HistoryAccess, Json,
    MessageId, PermissionsPatch, ScopeId, TurnId, TurnVisibility,
};
use posthaste_engine::verbs::agents::{Register, Unregister};
use posthaste_engine::verbs::contacts::{Answer, Ask};
use posthaste_engine::verbs::conversations::{Create, Invitee, Join, Leave};
use posthaste_engine::verbs::deliveries::{Acknowledge, MarkRead};
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::verbs::scopes::{CreateScope, JoinScope, LeaveScope};
use posthaste_engine::verbs::turns::Say;
use posthaste_engine::views::{InboxOrder, InboxQuery, TurnQuery};
use proptest::prelude::*;

use self::world::{AGENTS, CONVERSATIONS, Due, Op, Readers, SCOPES, Target, World};
use crate::harness::{Realm, id, member};

/// The real realm, and the ids of its messages and turns.
struct Real {
    realm: Realm,
    messages: Vec<MessageId>,
    turns: [Vec<TurnId>; CONVERSATIONS],
}

fn name(who: usize) -> AgentId {
    id(&format!("agent-{who}"))
}

fn caller(who: usize) -> Caller {
    member(&format!("agent-{who}"))
}

fn number(agent: &AgentId) -> usize {
    agent.as_str()["agent-".len()..].parse().expect("a number")
}

fn scope_id(scope: usize) -> ScopeId {
    ScopeId::new(format!("scope-{scope}")).expect("a scope id")
}

fn conversation_id(conversation: usize) -> ConversationId {
    ConversationId::new(format!("conversation-{conversation}")).expect("a conversation id")
}

fn addresses(targets: &[Target]) -> Vec<Address> {
    let address = |target: &Target| match target {
        Target::One(who) => Address::Agent(name(*who)),
        Target::Scope(scope) => Address::Scope(scope_id(*scope)),
        Target::All => Address::All,
    };
    targets.iter().map(address).collect()
}

/// The name of a refusal, which is what the model predicts.
fn refusal(error: &EngineError) -> String {
    let refusal = error.refusal().unwrap_or_else(|| panic!("{error:?}"));
    format!("{refusal:?}").chars().take_while(char::is_ascii_alphanumeric).collect()
}

impl Real {
    async fn new() -> Self {
        let realm = Realm::new();
        for scope in 0..SCOPES {
            let scope = CreateScope { id: Some(scope_id(scope)), ..CreateScope::default() };
            realm.engine.submit(&Caller::office(), scope).await.expect("a scope");
        }
        Self { realm, messages: Vec::new(), turns: Default::default() }
    }

    /// Executes an operation; returns the name of the refusal if it was refused.
    async fn apply(&mut self, op: &Op, world: &World) -> Result<(), String> {
        let engine = self.realm.engine.clone();
        let message = |n: usize| self.messages.get(n).copied().unwrap_or(MessageId(uuid::Uuid::nil()));
        let answer = match op.clone() {
            Op::Register { who, policy } => {
                let verb =
                    Register { id: Some(name(who)), contact_policy: Some(policy), ..Register::default() };
                engine.submit(&caller(who), verb).await.map(drop)
            }
            Op::Unregister { who } => engine
                .submit(&caller(who), Unregister { agent: name(who), reason: None, cause: None })
                .await
                .map(drop),
            Op::JoinScope { who, scope } => {
                let verb = JoinScope { scope: scope_id(scope), agent: name(who) };
                engine.submit(&caller(who), verb).await.map(drop)
            }
            Op::LeaveScope { who, scope } => {
                let verb = LeaveScope { scope: scope_id(scope), agent: name(who) };
                engine.submit(&caller(who), verb).await.map(drop)
            }
            Op::SendMessage { from, to, cc, bcc } => {
                let plain = SendMessage::text(addresses(&to), "words");
                let verb = SendMessage { cc: addresses(&cc), bcc: addresses(&bcc), ..plain };
                engine.submit(&caller(from), verb).await.map(|sent| {
                    let deliveries = sent.receipts.iter().map(|r| (number(&r.agent), r.copy, r.state));
                    let due = &world.messages.last().expect("a message").deliveries;
                    assert_eq!(deliveries.collect::<Vec<_>>(), *due, "receipts");
                    self.messages.push(sent.message.id);
                })
            }
            Op::MarkRead { who, message: n, unread } => {
                let verb = MarkRead { agent: name(who), message: message(n), unread };
                engine.submit(&caller(who), verb).await.map(drop)
            }
            Op::Acknowledge { who, message: n } => {
                let verb = Acknowledge { agent: name(who), message: message(n), response: None };
                engine.submit(&caller(who), verb).await.map(drop)
            }
            Op::Ask { from, to } => {
                let verb = Ask { to: name(to), reason: None, expires_at: None };
                engine.submit(&caller(from), verb).await.map(drop)
            }
            Op::Accept { who, from } => {
                let verb = Answer { from: name(from), state: ContactState::Accepted, expires_at: None };
                engine.submit(&caller(who), verb).await.map(drop)
            }
            Op::Block { who, from } => {
                let verb = Answer { from: name(from), state: ContactState::Blocked, expires_at: None };
                engine.submit(&caller(who), verb).await.map(drop)
            }
            Op::Create { by, conversation, others } => {
                let invitee = |(who, history): &(usize, HistoryAccess)| Invitee {
                    agent: name(*who),
                    role: None,
                    permissions: PermissionsPatch { history: Some(*history), ..Default::default() },
                };
                let verb = Create {
                    id: Some(conversation_id(conversation)),
                    kind: "chat".to_owned(),
                    subject: None,
                    parent: None,
                    parent_turn: None,
                    participants: others.iter().map(invitee).collect(),
                    first: None,
                    audience: Audience::Parties,
                    meta: None,
                };
                engine.submit(&caller(by), verb).await.map(drop)
            }
            Op::Say { by, conversation, to } => {
                let visibility = match to {
                    Readers::All => TurnVisibility::All,
                    Readers::Private => TurnVisibility::Private,
                    Readers::These(agents) => TurnVisibility::Agents(agents.into_iter().map(name).collect()),
                };
                let verb = Say {
                    conversation: conversation_id(conversation),
                    thread: None,
                    content_type: "text".to_owned(),
                    content: Json::new("\"words\"").expect("JSON"),
                    in_reply_to: None,
                    visibility: Some(visibility),
                    meta: None,
                };
                engine.submit(&caller(by), verb).await.map(|turn| self.turns[conversation].push(turn.id))
            }
            Op::Join { by, conversation } => engine
                .submit(&caller(by), Join { conversation: conversation_id(conversation), role: None })
                .await
                .map(drop),
            Op::Leave { by, conversation } => engine
                .submit(&caller(by), Leave { conversation: conversation_id(conversation), reason: None })
                .await
                .map(drop),
        };
        answer.map_err(|error| refusal(&error))
    }

    fn check(&self, world: &World) {
        for who in 0..AGENTS {
            self.check_inbox(world, who);
            for n in 0..world.messages.len() {
                let id = self.messages[n];
                let seen = self.realm.engine.read_blocking(|view| view.message(&caller(who), id)).ok();
                let seen = seen.map(|seen| {
                    assert_eq!(number(&seen.message.from), world.messages[n].from);
                    let deliveries = seen.deliveries.iter().map(|d| (number(&d.agent), d.copy, d.state));
                    deliveries.collect::<Vec<_>>()
                });
                assert_eq!(seen, world.deliveries_seen(who, n), "message {n} seen by {who}");
            }
            for conversation in 0..CONVERSATIONS {
                let query = TurnQuery { limit: 1_000, ..TurnQuery::default() };
                let look = self
                    .realm
                    .engine
                    .read_blocking(|view| view.turns(&caller(who), &conversation_id(conversation), &query));
                let index = |turn: &TurnId| self.turns[conversation].iter().position(|known| known == turn);
                let seen = match &look {
                    Ok(page) => Ok(page.items.iter().map(|turn| index(&turn.id).expect("a turn")).collect()),
                    Err(error) => Err(refusal(error)),
                };
                let due = world.turns_seen(who, conversation).map_err(str::to_owned);
                assert_eq!(seen, due, "turns of {conversation} seen by {who}");
                for (n, turn) in self.turns[conversation].iter().enumerate() {
                    let one = self
                        .realm
                        .engine
                        .read_blocking(|view| view.turn(&caller(who), &conversation_id(conversation), *turn));
                    assert_eq!(
                        one.is_ok(),
                        due.as_ref().is_ok_and(|seen| seen.contains(&n)),
                        "turn {n} by {who}"
                    );
                }
            }
        }
    }

    fn check_inbox(&self, world: &World, who: usize) {
        let look = |order: InboxOrder, unread: bool| {
            let query = InboxQuery { order, unread, limit: 1_000, ..InboxQuery::default() };
            let page =
                self.realm.engine.read_blocking(|view| view.inbox(&caller(who), &name(who), &query)).ok()?;
            let index =
                |id: &MessageId| self.messages.iter().position(|known| known == id).expect("a message");
            Some(page.items.iter().map(|l| (index(&l.message.id), l.delivery.state)).collect::<Vec<_>>())
        };
        let due = world.inbox(who);
        assert_eq!(look(InboxOrder::Oldest, false), due, "inbox of {who}");
        let newest = due.clone().map(|due| due.into_iter().rev().collect::<Vec<_>>());
        assert_eq!(look(InboxOrder::Newest, false), newest, "inbox of {who}, newest first");
        let unread =
            due.map(|due| due.into_iter().filter(|delivery| delivery.1.is_unread()).collect::<Vec<_>>());
        assert_eq!(look(InboxOrder::Priority, true), unread, "unread messages of {who}");
        let counts = self.realm.engine.read_blocking(|view| view.mail_counts(&caller(who), &name(who))).ok();
        assert_eq!(
            counts.map(|counts| counts.unread as usize),
            unread.map(|unread| unread.len()),
            "count of {who}"
        );
        // Only the agent itself may read its inbox.
        let other = caller((who + 1) % AGENTS);
        let other_read =
            self.realm.engine.read_blocking(|view| view.inbox(&other, &name(who), &InboxQuery::default()));
        assert!(other_read.is_err(), "{other:?} reads the inbox of {who}");
    }
}

/// The model does not define what unregistered agents may do with conversations and messages, so that is skipped.
fn is_undefined(op: &Op, world: &World) -> bool {
    let there = |who: &usize| world.agents[*who].active;
    match op {
        Op::MarkRead { who, .. } | Op::Acknowledge { who, .. } => !there(who),
        Op::Say { by, .. } | Op::Join { by, .. } | Op::Leave { by, .. } => !there(by),
        Op::Create { by, others, .. } => !there(by) || !others.iter().all(|(other, _)| there(other)),
        Op::Unregister { who } => world
            .conversations
            .iter()
            .any(|conversation| conversation.parts.get(who).is_some_and(|part| part.present)),
        _ => false,
    }
}

fn run(ops: &[Op]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (mut real, mut world) = (Real::new().await, World::default());
        // Most agents are registered from the start, and in half of the runs they share a conversation.
        let arrivals = (0..AGENTS - 1).map(|who| Op::Register { who, policy: ContactPolicy::Open });
        let others = vec![(1, HistoryAccess::Full), (2, HistoryAccess::FromJoin)];
        let conversation =
            ops.len().is_multiple_of(2).then_some(Op::Create { by: 0, conversation: 0, others });
        for op in arrivals.chain(conversation).chain(ops.iter().cloned()) {
            if is_undefined(&op, &world) {
                continue;
            }
            let due: Due = world.apply(&op);
            let answer = real.apply(&op, &world).await;
            assert_eq!(answer, due.map_err(str::to_owned), "{op:?}");
            real.check(&world);
        }
        let real = Real { realm: real.realm.reopened(), ..real };
        real.check(&world);
    });
}

fn target() -> impl Strategy<Value = Target> {
    prop_oneof![
        4 => (0..AGENTS).prop_map(Target::One),
        1 => (0..SCOPES).prop_map(Target::Scope),
        1 => Just(Target::All),
    ]
}

fn targets(most: usize) -> impl Strategy<Value = Vec<Target>> {
    prop::collection::vec(target(), 0..=most)
}

fn op() -> impl Strategy<Value = Op> {
    let who = || 0..AGENTS;
    let conversation = || 0..CONVERSATIONS;
    let policy = prop_oneof![
        3 => Just(ContactPolicy::Open),
        2 => Just(ContactPolicy::Contacts),
        1 => Just(ContactPolicy::Closed),
    ];
    let history = prop_oneof![
        3 => Just(HistoryAccess::Full),
        2 => Just(HistoryAccess::FromJoin),
        1 => Just(HistoryAccess::None),
    ];
    let readers = prop_oneof![
        3 => Just(Readers::All),
        1 => Just(Readers::Private),
        2 => prop::collection::vec(who(), 1..3).prop_map(Readers::These),
    ];
    let pair = || (who(), 1..AGENTS).prop_map(|(one, step)| (one, (one + step) % AGENTS));
    let others = prop::collection::vec((who(), history), 0..4);
    prop_oneof![
        3 => (who(), policy).prop_map(|(who, policy)| Op::Register { who, policy }),
        2 => who().prop_map(|who| Op::Unregister { who }),
        2 => (who(), 0..SCOPES).prop_map(|(who, scope)| Op::JoinScope { who, scope }),
        1 => (who(), 0..SCOPES).prop_map(|(who, scope)| Op::LeaveScope { who, scope }),
        8 => (who(), targets(2), targets(1), targets(1))
            .prop_map(|(from, to, cc, bcc)| Op::SendMessage { from, to, cc, bcc }),
        4 => (who(), 0..8_usize, any::<bool>())
            .prop_map(|(who, message, unread)| Op::MarkRead { who, message, unread }),
        2 => (who(), 0..8_usize).prop_map(|(who, message)| Op::Acknowledge { who, message }),
        1 => pair().prop_map(|(from, to)| Op::Ask { from, to }),
        2 => pair().prop_map(|(who, from)| Op::Accept { who, from }),
        1 => pair().prop_map(|(who, from)| Op::Block { who, from }),
        3 => (who(), conversation(), others).prop_map(|(by, conversation, others)| Op::Create { by, conversation, others }),
        5 => (who(), conversation(), readers).prop_map(|(by, conversation, to)| Op::Say { by, conversation, to }),
        2 => (who(), conversation()).prop_map(|(by, conversation)| Op::Join { by, conversation }),
        2 => (who(), conversation()).prop_map(|(by, conversation)| Op::Leave { by, conversation }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn realm_agrees_with_the_model(ops in prop::collection::vec(op(), 10..50)) {
        run(&ops);
    }
}

#[test]
fn reused_name_does_not_show_messages_of_the_former_holder() {
    let send =
        |from, to| Op::SendMessage { from, to: vec![Target::One(to)], cc: Vec::new(), bcc: Vec::new() };
    let policy = ContactPolicy::Open;
    run(&[send(0, 1), send(1, 0), Op::Unregister { who: 1 }, Op::Register { who: 1, policy }, send(0, 1)]);
}

#[test]
fn private_turn_is_hidden_and_a_returning_participant_reads_from_its_return() {
    let say = |to| Op::Say { by: 0, conversation: 0, to };
    let (leave, join) = (Op::Leave { by: 2, conversation: 0 }, Op::Join { by: 2, conversation: 0 });
    run(&[
        say(Readers::All),
        say(Readers::Private),
        say(Readers::These(vec![2])),
        leave,
        say(Readers::All),
        join,
    ]);
}

#[test]
fn bcc_is_known_only_to_sender_and_recipient() {
    let (to, bcc) = (vec![Target::One(1)], vec![Target::One(2)]);
    run(&[
        Op::SendMessage { from: 0, to, cc: Vec::new(), bcc },
        Op::MarkRead { who: 2, message: 0, unread: false },
    ]);
}
