"""Plans on which brokers the replicas of partitions should be. Pure: the same input always gives the same plan.

    model           brokers, partitions, and the changes that a plan consists of
    layout          where all replicas are while a plan is made: counts, bytes, leaderships, what still fits
    planner         the plans: move to these brokers, drain a broker, change the replication factor, balance
      needed_moves    replicas that have to move, or to be added or removed
      racks           no two replicas in a rack while another rack has none
      replica_counts  as many replicas on each broker
      disk_use        as many bytes on each broker, with as many replicas
      leaderships     as many first replicas on each broker; this copies nothing
    plan_file       a plan as a file, in the form of Kafka's tools, and what makes one impossible

A plan never has two replicas of a partition on one broker, moves no more than its goal needs, and gives no broker more
than fits on its disks. Each step makes the imbalance smaller, so a plan that is cut off at a limit is still a good one.
"""
