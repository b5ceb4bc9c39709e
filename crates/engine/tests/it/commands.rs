//! Random stamped commands over a small world, valid and invalid; the same seed gives the same commands.

use std::collections::BTreeMap;

use posthaste_engine::limits::Rules;
use posthaste_engine::nouns::{
    Address, AgentId, AgentKind, Audience, Body, Caller, ContactPolicy, ContactState, ConversationId,
    ConversationStatus, HistoryAccess, JoinPolicy, Json, MessageId, Millis, PeerKind, PermissionsPatch,
    Priority, Privacy, RealmName, RunPhase, ScopeId, ScopeVisibility, SendPolicy, Summary, Taken, TaskStatus,
    ThreadId, TokenRole, TurnId, TurnVisibility, Visibility,
};
use posthaste_engine::stamp::Stamp;
use posthaste_engine::testing::record_delivered;
use posthaste_engine::verbs::agents::{Existing, Orphan, Register, SetState, Unregister, Update};
use posthaste_engine::verbs::claims::{Claim, MoveClaim, ReleaseClaim};
use posthaste_engine::verbs::contacts::{Answer, Ask, EndContact};
use posthaste_engine::verbs::conversations::{Close, Create, Invite, Invitee, Join, Leave, Remove, Reopen};
use posthaste_engine::verbs::deliveries::{
    Acknowledge, Discard, Dispatched, MarkDelivered, MarkFailed, MarkRead,
};
use posthaste_engine::verbs::keys::ChangeKeys;
use posthaste_engine::verbs::mail::{ConversationRef, JoinMode, SendMessage};
use posthaste_engine::verbs::office::{Announce, SetRules, Sweep};
use posthaste_engine::verbs::peers::{PutPeer, RemovePeer};
use posthaste_engine::verbs::reservations::ReserveEach;
use posthaste_engine::verbs::reservations::{Release, Renew, Reserve, Which};
use posthaste_engine::verbs::runs::{Advance, Opening, RunMessage};
use posthaste_engine::verbs::scopes::{CreateScope, DeleteScope, JoinScope, LeaveScope};
use posthaste_engine::verbs::seen_keys::SingleUseKey;
use posthaste_engine::verbs::signed::{SendSigned, SideEffect};
use posthaste_engine::verbs::tasks::{AddContributor, CreateTask, UpdateTask};
use posthaste_engine::verbs::tokens::{CreateToken, RenewToken, RevokeToken};
use posthaste_engine::verbs::turns::{FirstTurn, KeepSummary, OpenThread, Say};
use posthaste_engine::verbs::{Command, Verb};
use posthaste_engine::{RECORD_VERSION, Record};
use uuid::Uuid;

use crate::harness::id;
use crate::rng::Rng;

/// Time of the first stamp.
const FIRST_STAMP: Millis = 1_700_000_000_000;
/// Verbs that add state are chosen more often than verbs that remove it.
const OFTEN: &[&str] =
    &["send", "say", "register", "mark_read", "create_conversation", "join_scope", "reserve"];
const SELDOM: &[&str] =
    &["change_keys", "orphan", "unregister", "delete_scope", "close_conversation", "set_rules", "set_state"];

/// Generates records.
pub struct Commands {
    rng: Rng,
    made: u64,
    now: Millis,
    messages: Vec<MessageId>,
    turns: Vec<(ConversationId, TurnId)>,
    threads: Vec<(ConversationId, ThreadId)>,
    openers: BTreeMap<ConversationId, AgentId>,
    tokens: Vec<String>,
}

impl Commands {
    pub fn new(seed: u64) -> Self {
        let (messages, turns, threads, tokens, openers) = Default::default();
        Self { rng: Rng::new(seed), made: 0, now: FIRST_STAMP, messages, turns, threads, tokens, openers }
    }

    fn stamp(&mut self) -> Stamp {
        self.made += 1;
        self.now += self.rng.below(400) as Millis;
        // Clocks differ and jump, also forwards.
        let slip = match self.rng.below(40) {
            0 => 6_000,
            1..4 => -5_000,
            _ => 0,
        };
        let high = (u64::try_from(FIRST_STAMP).unwrap() << 16) | 0x7000;
        let low = (1 << 63) + (self.made << 16);
        Stamp { id: Uuid::from_u64_pair(high, low), now: self.now + slip }
    }

    fn caller(&mut self) -> Caller {
        match self.rng.below(20) {
            0 => Caller::office(),
            1 => Caller::admin(id("root"), "test"),
            2 => Caller::stranger(self.agent(), "test"),
            3..6 => Caller::observer(self.agent(), "test"),
            _ => Caller::member(self.agent(), "test"),
        }
    }

    fn agent(&mut self) -> AgentId {
        id(&format!("a{}", self.rng.below(7)))
    }

    fn scope(&mut self) -> ScopeId {
        ScopeId::new(format!("s{}", self.rng.below(4))).unwrap()
    }

    fn conversation(&mut self) -> ConversationId {
        // Names advance over time, so that there is always a new conversation to open.
        let oldest = self.made / 300;
        ConversationId::new(format!("c{}", oldest + self.rng.below(6) as u64)).unwrap()
    }

    fn role(&mut self) -> String {
        (*self.rng.pick(&["scout", "clerk", "moderator", ""])).to_owned()
    }

    fn words(&mut self) -> String {
        let word = |rng: &mut Rng| *rng.pick(&["ship", "mast", "Öl", "wind?", "decided", "\"q\"", "日"]);
        (0..=self.rng.below(6)).map(|_| word(&mut self.rng)).collect::<Vec<_>>().join(" ")
    }

    fn json(&mut self) -> Json {
        let text = match self.rng.below(4) {
            0 => format!("{{\"n\": {}, \"nested\":{{\"z\":1,\"a\":[1.50,2e3]}}}}", self.rng.below(9)),
            1 => format!("{{\"text\":\"words {}\"}}", self.rng.below(9)),
            2 => "[ true,null ]".to_owned(),
            _ => "\"plain\"".to_owned(),
        };
        Json::new(text).unwrap()
    }

    fn later(&mut self) -> Millis {
        self.now + self.rng.below(90_000) as Millis - 5_000
    }

    fn message(&mut self) -> MessageId {
        let place = self.messages.len().saturating_sub(1 + self.rng.below(4));
        self.messages.get(place).copied().unwrap_or(MessageId(Uuid::nil()))
    }

    fn turn(&mut self) -> TurnId {
        let place = self.turns.len().saturating_sub(1 + self.rng.below(12));
        self.turns.get(place).map_or(TurnId(Uuid::nil()), |turn| turn.1)
    }

    fn thread(&mut self) -> ThreadId {
        let place = self.threads.len().saturating_sub(1 + self.rng.below(10));
        self.threads.get(place).map_or(ThreadId(Uuid::nil()), |thread| thread.1)
    }

    fn audience(&mut self) -> Audience {
        *self.rng.pick(Audience::ALL)
    }

    fn address(&mut self) -> Address {
        match self.rng.below(24) {
            0 | 1 => Address::Scope(self.scope()),
            2 => Address::Role { role: self.role(), within: self.rng.once_in(2).then(|| self.scope()) },
            3 => Address::Parent,
            4 => Address::Children { depth: self.rng.maybe(|c| c.below(3) as u32) },
            5 => Address::Siblings,
            6 => Address::Ancestors { depth: self.rng.maybe(|c| c.below(3) as u32) },
            7 => Address::Descendants { depth: self.rng.maybe(|c| c.below(3) as u32) },
            8 => Address::Kind(*self.rng.pick(AgentKind::ALL)),
            9 => Address::All,
            10 => Address::Contacts,
            11 => Address::Public,
            12 => Address::Remote { agent: "far".to_owned(), realm: self.realm() },
            _ => Address::Agent(self.agent()),
        }
    }

    fn realm(&mut self) -> RealmName {
        RealmName::new(self.rng.pick(&["main", "east", "west"])).unwrap()
    }

    fn addresses(&mut self, most: usize) -> Vec<Address> {
        (0..self.rng.below(most + 1)).map(|_| self.address()).collect()
    }

    fn visibility(&mut self) -> Option<TurnVisibility> {
        Some(match self.rng.below(8) {
            0 => TurnVisibility::Agents(vec![self.agent(), self.agent()]),
            1 => TurnVisibility::Roles(vec![self.role()]),
            2 => TurnVisibility::Internal,
            3 => TurnVisibility::Private,
            4 => TurnVisibility::All,
            _ => return None,
        })
    }

    fn content_type(&mut self) -> String {
        (*self.rng.pick(&["text", "text", "data", "x-log", "nonsense"])).to_owned()
    }

    fn invitee(&mut self) -> Invitee {
        let permissions = PermissionsPatch {
            can_send: self.rng.maybe(|c| c.once_in(2)),
            can_observe: self.rng.maybe(|c| !c.once_in(4)),
            history: self.rng.maybe(|c| *c.pick(HistoryAccess::ALL)),
            ..PermissionsPatch::default()
        };
        Invitee { agent: self.agent(), role: self.rng.once_in(2).then(|| self.role()), permissions }
    }

    fn which(&mut self) -> Which {
        match self.rng.below(3) {
            0 => Which::Number(self.made as i64 + self.rng.below(50) as i64),
            _ => Which::Key(self.key()),
        }
    }

    fn key(&mut self) -> String {
        format!("key-{}", self.made / 100 + self.rng.below(6) as u64)
    }

    fn word(&mut self) -> &'static str {
        if self.rng.once_in(3) {
            return OFTEN[self.rng.below(OFTEN.len())];
        }
        let word = *self.rng.pick(Command::WORDS);
        if SELDOM.contains(&word) && !self.rng.once_in(6) { "send" } else { word }
    }

    fn register(&mut self) -> Register {
        Register {
            id: (!self.rng.once_in(4)).then(|| self.agent()),
            kind: self.rng.maybe(|c| *c.pick(AgentKind::ALL)),
            name: self.rng.once_in(2).then(|| format!("Name {}", self.rng.below(5))),
            role: self.rng.once_in(2).then(|| self.role()),
            parent: self.rng.once_in(3).then(|| self.agent()),
            state: self.rng.maybe(|c| (*c.pick(&["busy", "idle", ""])).to_owned()),
            visibility: self.rng.once_in(12).then(|| *self.rng.pick(Visibility::ALL)),
            contact_policy: self.rng.once_in(8).then(|| *self.rng.pick(ContactPolicy::ALL)),
            privacy: self.rng.once_in(8).then(|| *self.rng.pick(Privacy::ALL)),
            meta: self.rng.once_in(3).then(|| self.json()),
            scopes: (0..self.rng.below(3)).map(|_| self.scope()).collect(),
            existing: if self.rng.once_in(2) { Existing::TakeOver } else { Existing::Refuse },
            ..Register::default()
        }
    }

    fn send(&mut self) -> SendMessage {
        let mut send = SendMessage::text(self.addresses(2), self.words());
        send.cc = self.addresses(1);
        send.bcc = self.addresses(1);
        if self.rng.once_in(3) {
            send.body = Body::Json(self.json());
        }
        send.kind = (*self.rng.pick(&["", "request", "note"])).to_owned();
        send.subject = self.rng.once_in(2).then(|| self.words());
        send.priority = *self.rng.pick(&Priority::TIERS);
        send.ack_required = self.rng.once_in(4);
        send.expires_at = self.rng.once_in(6).then(|| self.later());
        send.in_reply_to = self.rng.once_in(20).then(|| self.message());
        send.key = self.rng.once_in(6).then(|| self.key());
        send.meta = self.rng.once_in(5).then(|| self.json());
        send.audience = self.audience();
        send.allow_no_recipients = self.rng.once_in(2);
        if self.rng.once_in(3) {
            let join = match self.rng.below(4) {
                0 => JoinMode::IfAllowed,
                1 => JoinMode::NameOnly { kind: "chat".to_owned() },
                2 => JoinMode::PartiesOnly { kind: "chat".to_owned() },
                _ => JoinMode::Open { kind: "chat".to_owned() },
            };
            send.within = Some(ConversationRef {
                conversation: self.conversation(),
                thread: self.rng.once_in(6).then(|| self.thread()),
                reply_to: self.rng.once_in(6).then(|| self.turn()),
                visibility: self.visibility(),
                join,
            });
        }
        send
    }

    fn single_use_key(&mut self) -> SingleUseKey {
        SingleUseKey {
            label: format!("key-{}", self.made / 20 + self.rng.below(4) as u64),
            until: self.rng.once_in(2).then(|| self.later()),
            digest: self.rng.once_in(2).then(|| vec![self.rng.below(2) as u8]),
        }
    }

    fn side_effect(&mut self) -> SideEffect {
        match self.rng.below(6) {
            0 => SideEffect::Renew(Renew { which: self.which(), expires_at: self.later() }),
            1 => SideEffect::Release(self.which()),
            2 => SideEffect::Lapse(self.which()),
            3 => SideEffect::Acknowledge {
                label: self.single_use_key().label,
                message: self.rng.once_in(2).then(|| self.message()),
                response: None,
            },
            4 => SideEffect::Entitle {
                conversation: self.conversation(),
                subject: self.words(),
                ended: self.rng.once_in(3).then_some(ConversationStatus::Completed),
            },
            _ => SideEffect::Reserve(self.reserve()),
        }
    }

    fn reserve(&mut self) -> Reserve {
        let path = |rng: &mut Rng| {
            (*rng.pick(&["src/**", "src/a.rs", "docs/*.md", "*", "../up", "src/[ab].rs"])).to_owned()
        };
        Reserve {
            key: self.rng.once_in(2).then(|| self.key()),
            scope: (*self.rng.pick(&["repo", "site"])).to_owned(),
            paths: (0..=self.rng.below(2)).map(|_| path(&mut self.rng)).collect(),
            exclusive: self.rng.once_in(2),
            reason: None,
            issued_at: None,
            expires_at: self.later(),
            audience: self.audience(),
            meta: None,
        }
    }

    fn advance(&mut self) -> Advance {
        let messages = (0..self.rng.below(3)).map(|n| RunMessage {
            id: MessageId(Uuid::from_u128((u128::from(self.made) << 8) + n as u128 + 1)),
            from: self.agent(),
            from_kind: *self.rng.pick(AgentKind::ALL),
            addressed: self.addresses(2),
            to: (0..self.rng.below(3)).map(|_| self.agent()).collect(),
            away: Vec::new(),
            kind: "request".to_owned(),
            subject: self.words(),
            body: self.words(),
            priority: *self.rng.pick(&Priority::TIERS),
            correlation: None,
            key: self.rng.once_in(4).then(|| self.words()),
            meta: None,
            in_reply_to: self.rng.once_in(4).then(|| self.message()),
            elsewhere: self.rng.once_in(6).then(|| ConversationId::new("elsewhere").unwrap()),
        });
        let messages: Vec<RunMessage> = messages.collect();
        let agent = self.agent();
        let took = self.rng.once_in(3).then(|| Taken { agent: agent.clone(), message: self.message() });
        self.messages.extend(messages.iter().map(|message| message.id));
        Advance {
            instance: format!("user:{}", self.rng.below(2)),
            name: format!("run-{}", self.rng.below(6)),
            open: (!self.rng.once_in(3)).then(|| Opening { owner: "user:0@here".into(), title: None }),
            agent,
            took: took.into_iter().collect(),
            forget: self.rng.once_in(5),
            gave_up: Vec::new(),
            note: self.rng.once_in(2).then(|| self.json()),
            messages,
            steps: 1,
            phase: self.rng.maybe(|c| *c.pick(RunPhase::ALL)),
            result: self.rng.once_in(4).then(|| self.json()),
            state: self.rng.once_in(2).then(|| self.json()),
            contributors: self.rng.once_in(4).then(|| self.words()).into_iter().collect(),
        }
    }

    fn command(&mut self, word: &'static str) -> Command {
        match word {
            "change_keys" => ChangeKeys {
                agent: self.agent(),
                before: self.rng.once_in(3).then(|| self.json()),
                keys: self.json(),
                proof_keys: (0..self.rng.below(2)).map(|_| self.single_use_key()).collect(),
                token: self.rng.once_in(3).then(|| vec![self.rng.below(256) as u8; 32]),
                token_door: None,
                token_ends: None,
                revoke: self.rng.once_in(20),
            }
            .into_command(),
            "send_sealed" => SendSigned {
                message: self.send(),
                keys: (0..self.rng.below(3)).map(|_| self.single_use_key()).collect(),
                side_effect: self.rng.once_in(2).then(|| self.side_effect()),
            }
            .into_command(),
            "discard" => Discard { agent: self.agent(), message: self.message() }.into_command(),
            "register" => self.register().into_command(),
            "update" => Update {
                name: self.rng.once_in(2).then(|| self.words()),
                role: self.rng.once_in(3).then(|| self.role()),
                parent: self.rng.once_in(4).then(|| self.agent()),
                owner: self.rng.once_in(6).then(|| self.agent()),
                visibility: self.rng.once_in(12).then(|| *self.rng.pick(Visibility::ALL)),
                meta: self.rng.once_in(2).then(|| self.json()),
                merge_meta: self.rng.once_in(2),
                ..Update::of(self.agent())
            }
            .into_command(),
            "set_state" => {
                let state = (*self.rng.pick(&["suspended", "idle", "idle", "busy", ""])).to_owned();
                SetState { agent: self.agent(), state }.into_command()
            }
            "orphan" => Orphan { agent: self.agent(), cause: None }.into_command(),
            "unregister" => Unregister { agent: self.agent(), reason: None, cause: None }.into_command(),
            "send" => self.send().into_command(),
            "record_delivered" => {
                let (one, other) = (self.agent(), self.agent());
                let mut recipients = vec![one, other];
                recipients.dedup();
                let to = recipients.iter().cloned().map(Address::Agent).collect();
                record_delivered(SendMessage::text(to, self.words()), recipients).into_command()
            }
            "mark_delivered" => {
                MarkDelivered { agent: self.agent(), messages: vec![self.message(), self.message()] }
                    .into_command()
            }
            "mark_read" => {
                let unread = self.rng.once_in(4);
                MarkRead { agent: self.agent(), message: self.message(), unread }.into_command()
            }
            "acknowledge" => {
                let response = self.rng.once_in(2).then(|| self.words());
                Acknowledge { agent: self.agent(), message: self.message(), response }.into_command()
            }
            "mark_failed" => {
                MarkFailed { agent: self.agent(), message: self.message(), reason: self.words() }
                    .into_command()
            }
            "dispatched" => Dispatched {
                peer: RealmName::new("north").expect("a realm name"),
                agent: self.agent(),
                message: self.message(),
                failure: self.rng.once_in(3).then(|| self.words()),
            }
            .into_command(),
            "create_conversation" => Create {
                id: (!self.rng.once_in(6)).then(|| self.conversation()),
                kind: "chat".to_owned(),
                subject: self.rng.once_in(2).then(|| self.words()),
                parent: self.rng.once_in(5).then(|| self.conversation()),
                parent_turn: self.rng.once_in(8).then(|| self.turn()),
                participants: (0..self.rng.below(10)).map(|_| self.invitee()).collect(),
                first: self.rng.once_in(2).then(|| FirstTurn {
                    content_type: self.content_type(),
                    content: self.json(),
                    visibility: self.visibility(),
                }),
                audience: self.audience(),
                meta: self.rng.once_in(4).then(|| self.json()),
            }
            .into_command(),
            "close_conversation" => {
                let status = self.rng.maybe(|c| *c.pick(ConversationStatus::ALL));
                Close { conversation: self.conversation(), status, reason: None }.into_command()
            }
            "reopen_conversation" => Reopen { conversation: self.conversation() }.into_command(),
            "join_conversation" => {
                let role = self.rng.once_in(2).then(|| self.role());
                Join { conversation: self.conversation(), role }.into_command()
            }
            "leave_conversation" => Leave { conversation: self.conversation(), reason: None }.into_command(),
            "invite" => Invite { conversation: self.conversation(), invitee: self.invitee() }.into_command(),
            "remove_participant" => {
                Remove { conversation: self.conversation(), agent: self.agent(), reason: None }.into_command()
            }
            "say" => {
                let thread = self.rng.once_in(5).then(|| self.thread());
                let home =
                    self.threads.iter().find(|known| Some(known.1) == thread).map(|known| known.0.clone());
                Say {
                    conversation: home.unwrap_or_else(|| self.conversation()),
                    thread,
                    content_type: self.content_type(),
                    content: self.json(),
                    in_reply_to: self.rng.once_in(5).then(|| self.turn()),
                    visibility: self.visibility(),
                    meta: self.rng.once_in(5).then(|| self.json()),
                }
                .into_command()
            }
            "open_thread" => {
                let parent = self.rng.once_in(3).then(|| self.thread());
                let (root, subject) = (self.turn(), self.rng.once_in(2).then(|| self.words()));
                let home = self.turns.iter().find(|turn| turn.1 == root).map(|turn| turn.0.clone());
                let conversation = home.unwrap_or_else(|| self.conversation());
                OpenThread { conversation, root, parent, subject }.into_command()
            }
            "keep_summary" => KeepSummary {
                conversation: self.conversation(),
                part: "all".to_owned(),
                summary: Summary { text: self.words(), lines: 1, ..Summary::default() },
                up_to: self.rng.below(500) as i64,
                announce: self.rng.once_in(2),
            }
            .into_command(),
            _ => self.other_command(word),
        }
    }

    fn other_command(&mut self, word: &'static str) -> Command {
        match word {
            "create_scope" => CreateScope {
                id: (!self.rng.once_in(6)).then(|| self.scope()),
                parent: self.rng.once_in(3).then(|| self.scope()),
                join_policy: self.rng.maybe(|c| *c.pick(JoinPolicy::ALL)),
                roles: vec![self.role()],
                visibility: self.rng.maybe(|c| *c.pick(ScopeVisibility::ALL)),
                send_policy: self.rng.maybe(|c| *c.pick(SendPolicy::ALL)),
                auto_delete: self.rng.once_in(6),
                ..CreateScope::default()
            }
            .into_command(),
            "join_scope" => JoinScope { scope: self.scope(), agent: self.agent() }.into_command(),
            "leave_scope" => LeaveScope { scope: self.scope(), agent: self.agent() }.into_command(),
            "delete_scope" => {
                DeleteScope { scope: self.scope(), with_descendants: self.rng.once_in(2) }.into_command()
            }
            "create_task" => CreateTask {
                id: (!self.rng.once_in(6)).then(|| self.conversation()),
                title: self.rng.once_in(2).then(|| self.words()),
                description: None,
                status: self.rng.maybe(|c| *c.pick(TaskStatus::ALL)),
                owner: self.rng.once_in(4).then(|| self.words()),
                assignee: self.rng.once_in(2).then(|| self.agent()),
                participants: (0..self.rng.below(3)).map(|_| self.invitee()).collect(),
                audience: self.audience(),
                meta: None,
            }
            .into_command(),
            "update_task" => UpdateTask {
                status: self.rng.maybe(|c| *c.pick(TaskStatus::ALL)),
                assignee: self.rng.once_in(3).then(|| self.agent()),
                unassign: self.rng.once_in(6),
                result: self.rng.once_in(4).then(|| self.json()),
                ..UpdateTask::of(self.conversation())
            }
            .into_command(),
            "add_contributor" => {
                AddContributor { task: self.conversation(), contributor: self.words() }.into_command()
            }
            "advance_run" => self.advance().into_command(),
            "reserve" => self.reserve().into_command(),
            "reserve_each" => {
                let words = ["src/**", "src/a.rs", "docs/*.md", "*", "../up", "tool://slot"];
                let count = 1 + self.rng.below(3);
                ReserveEach {
                    scope: (*self.rng.pick(&["repo", "site"])).to_owned(),
                    paths: (0..count).map(|_| (*self.rng.pick(&words)).to_owned()).collect(),
                    exclusive: self.rng.once_in(2),
                    reason: None,
                    expires_at: self.later(),
                    audience: self.audience(),
                    only_if_free: self.rng.once_in(4),
                    meta: None,
                }
                .into_command()
            }
            "claim" => Claim {
                alias: (*self.rng.pick(&["/srv/app", "/srv/site", "example.org/app"])).to_owned(),
                realm: self.realm(),
                by: self.rng.once_in(2).then(|| self.agent()),
                instead_of: self.rng.once_in(4).then(|| self.realm()),
                project: self.rng.once_in(2).then(|| "/srv/site".to_owned()),
                covers: self.rng.once_in(2),
            }
            .into_command(),
            "move_claim" => MoveClaim {
                alias: (*self.rng.pick(&["/srv/app", "/srv/site", "example.org/app"])).to_owned(),
                realm: self.realm(),
                by: self.rng.once_in(2).then(|| self.agent()),
                project: self.rng.once_in(2).then(|| "/srv/site".to_owned()),
            }
            .into_command(),
            "release_claim" => {
                let alias = *self.rng.pick(&["/srv/app", "/srv/site", "example.org/app"]);
                ReleaseClaim { alias: alias.to_owned() }.into_command()
            }
            "renew" => Renew { which: self.which(), expires_at: self.later() }.into_command(),
            "release" => {
                let which = (0..self.rng.below(2)).map(|_| self.which()).collect();
                Release { which, owner: self.rng.once_in(4).then(|| self.agent()) }.into_command()
            }
            "ask_contact" => {
                let expires_at = self.rng.once_in(4).then(|| self.later());
                Ask { to: self.agent(), reason: self.rng.once_in(2).then(|| self.words()), expires_at }
                    .into_command()
            }
            "answer_contact" => Answer {
                from: self.agent(),
                state: *self.rng.pick(ContactState::ALL),
                expires_at: self.rng.once_in(4).then(|| self.later()),
            }
            .into_command(),
            "end_contact" => EndContact { with: self.agent() }.into_command(),
            "create_token" => CreateToken {
                hash: vec![self.rng.below(256) as u8; if self.rng.once_in(5) { 4 } else { 32 }],
                role: *self.rng.pick(TokenRole::ALL),
                name: "root".to_owned(),
                door: None,
                observe: false,
                expires_at: self.rng.once_in(3).then(|| self.later()),
            }
            .into_command(),
            "revoke_token" => {
                let place = self.rng.below(self.tokens.len() + 1);
                RevokeToken { id: self.tokens.get(place).cloned().unwrap_or_default() }.into_command()
            }
            "renew_token" => RenewToken {
                old: vec![self.rng.below(256) as u8; 32],
                hash: vec![self.rng.below(256) as u8; 32],
                expires_at: self.rng.once_in(3).then(|| self.later()),
            }
            .into_command(),
            "put_peer" => PutPeer {
                name: self.realm(),
                kind: *self.rng.pick(PeerKind::ALL),
                url: None,
                token_ref: None,
                reachable: self.rng.once_in(2),
                volatile: false,
                meta: self.rng.once_in(3).then(|| self.json()),
                seen_at: self.rng.once_in(2).then(|| self.later()),
            }
            .into_command(),
            "remove_peer" => RemovePeer { name: self.realm() }.into_command(),
            "announce" => {
                let to = self.rng.once_in(2).then(|| vec![self.agent()]);
                Announce { word: "door.opened".to_owned(), data: self.json(), to }.into_command()
            }
            "set_rules" => SetRules {
                rules: Rules {
                    thread_depth: 1 + self.rng.below(4) as u32,
                    participants: 7 + self.rng.below(6) as u32,
                    pending_contacts: self.rng.below(4) as u32,
                    sweep_rows: self.rng.below(20) as u32,
                    ..Rules::default()
                },
            }
            .into_command(),
            "sweep" => Sweep {}.into_command(),
            other => panic!("these tests do not know the verb {other} yet"),
        }
    }
}

impl Iterator for Commands {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        let (stamp, word) = (self.stamp(), self.word());
        let command = self.command(word);
        // Mostly a permitted caller, so that many commands succeed.
        let permitted = match &command {
            Command::MarkFailed(_)
            | Command::ChangeKeys(_)
            | Command::Dispatched(_)
            | Command::Advance(_)
            | Command::CreateToken(_)
            | Command::RevokeToken(_)
            | Command::RenewToken(_)
            | Command::PutPeer(_) => None,
            Command::RemovePeer(_) | Command::SetRules(_) | Command::Sweep(_) | Command::DeleteScope(_) => {
                None
            }
            Command::MarkDelivered(verb) => Some(verb.agent.clone()),
            Command::MarkRead(verb) => Some(verb.agent.clone()),
            Command::Acknowledge(verb) => Some(verb.agent.clone()),
            Command::Discard(verb) => Some(verb.agent.clone()),
            Command::JoinScope(verb) => Some(verb.agent.clone()),
            Command::LeaveScope(verb) => Some(verb.agent.clone()),
            Command::Register(verb) => verb.id.clone(),
            Command::Update(verb) => Some(verb.agent.clone()),
            Command::Say(verb) => self.openers.get(&verb.conversation).cloned(),
            Command::OpenThread(verb) => self.openers.get(&verb.conversation).cloned(),
            Command::Invite(verb) => self.openers.get(&verb.conversation).cloned(),
            Command::Remove(verb) => self.openers.get(&verb.conversation).cloned(),
            _ => Some(self.agent()),
        };
        let caller = match permitted {
            _ if self.rng.once_in(3) => self.caller(),
            Some(agent) => Caller::member(agent, "test"),
            None => Caller::office(),
        };
        // The first id that a command assigns is that of its stamp, so what it creates is known before it is applied.
        match &command {
            Command::SendMessage(_) | Command::SendSigned(_) | Command::RecordDelivered(_) => {
                self.messages.push(MessageId(stamp.id));
            }
            Command::Say(verb) => self.turns.push((verb.conversation.clone(), TurnId(stamp.id))),
            Command::OpenThread(verb) => self.threads.push((verb.conversation.clone(), ThreadId(stamp.id))),
            Command::CreateToken(_) => self.tokens.push(stamp.id.to_string()),
            Command::Create(verb) => {
                if let Some(id) = &verb.id {
                    self.openers.entry(id.clone()).or_insert_with(|| caller.agent.clone());
                }
            }
            _ => {}
        }
        Some(Record { v: RECORD_VERSION, stamp, caller, command })
    }
}
