"""The clients of a run, as its plan says."""

from simulator.clients.classic_member import ClassicMember
from simulator.clients.client import Scene, SimClient
from simulator.clients.committer import Committer
from simulator.clients.consumer import Consumer
from simulator.clients.consumer_member import ConsumerMember
from simulator.clients.idempotent_producer import IdempotentProducer
from simulator.clients.mixed_member import MixedMember
from simulator.clients.own_consumer import OwnConsumer
from simulator.clients.own_producer import OwnProducer
from simulator.clients.own_transactional_producer import OwnTransactionalProducer
from simulator.clients.plain_producer import PlainProducer
from simulator.clients.reading import READ_COMMITTED
from simulator.clients.reassigner import Reassigner
from simulator.clients.seeker import Seeker
from simulator.clients.transactional_producer import TransactionalProducer
from simulator.clients.vandal import Vandal
from simulator.plan import CONSUMER_SESSION_TIMEOUT, GroupPlan, Plan


def clients_of(plan: Plan, scene: Scene) -> list[SimClient]:
    return [
        *(PlainProducer(scene, f"plain-{number}", acks) for number, acks in enumerate(plan.plain_acks)),
        *(IdempotentProducer(scene, f"idempotent-{number}") for number in range(plan.idempotent_producers)),
        *(Consumer(scene, f"consumer-{number}", sessions=False) for number in range(plan.consumers)),
        *(Consumer(scene, f"follower-{number}", sessions=True) for number in range(plan.session_consumers)),
        *(
            Consumer(scene, f"committed-{number}", sessions=True, isolation_level=READ_COMMITTED)
            for number in range(plan.committed_consumers)
        ),
        *_transactional_producers(plan, scene),
        *_own_clients(plan, scene),
        *(Committer(scene, f"committer-{number}", group) for number, group in enumerate(plan.offset_groups)),
        *(member for group in plan.groups for member in _members(plan, scene, group)),
        Seeker(scene, "seeker"),
        *([Vandal(scene, "vandal")] if plan.vandal else []),
        *([Reassigner(scene, "reassigner")] if plan.reassigns else []),
    ]


def _members(plan: Plan, scene: Scene, group: GroupPlan) -> list[SimClient]:
    dynamic = [f"{group.name}-dynamic-{number}" for number in range(group.dynamic)]
    static = [f"{group.name}-static-{number}" for number in range(group.static)]
    mixed = [f"{group.name}-classic-{number}" for number in range(group.mixed)]
    companions = dynamic + static + mixed
    if group.consumer_protocol:
        timeout_ms = int(plan.node_settings[CONSUMER_SESSION_TIMEOUT])
        instances = dict.fromkeys(dynamic) | {name: name for name in static}
        return [
            *(
                ConsumerMember(scene, name, group.name, companions, timeout_ms, instance_id=instance_id)
                for name, instance_id in instances.items()
            ),
            *(MixedMember(scene, name, group.name, companions) for name in mixed),
        ]
    members: list[SimClient] = [ClassicMember(scene, name, group.name, companions) for name in dynamic]
    members += [ClassicMember(scene, name, group.name, companions, instance_id=name) for name in static]
    if group.double:
        double = ClassicMember(scene, f"{static[0]}-double", group.name, companions, instance_id=static[0])
        members.append(double)
    return members


def _own_clients(plan: Plan, scene: Scene) -> list[SimClient]:
    groups = [*plan.offset_groups, *(group.name for group in plan.groups)]
    return [
        *(OwnProducer(scene, f"own-producer-{number}") for number in range(plan.own_producers)),
        *(
            OwnTransactionalProducer(
                scene,
                f"own-transactional-{number}{'abc'[rival]}",
                f"own-id-{number}",
                protocol,
                groups,
                abandons=each.abandons,
            )
            for number, each in enumerate(plan.own_transactional)
            for rival, protocol in enumerate(each.protocols)
        ),
        *(
            OwnConsumer(scene, f"own-consumer-{number}", read_committed=number % 2 == 0)
            for number in range(plan.own_consumers)
        ),
    ]


def _transactional_producers(plan: Plan, scene: Scene) -> list[TransactionalProducer]:
    groups = [*plan.offset_groups, *(group.name for group in plan.groups)]
    return [
        TransactionalProducer(
            scene,
            f"transactional-{number}{'abc'[rival]}",
            f"id-{number}",
            protocol,
            groups,
            abandons=each.abandons,
        )
        for number, each in enumerate(plan.transactional)
        for rival, protocol in enumerate(each.protocols)
    ]
