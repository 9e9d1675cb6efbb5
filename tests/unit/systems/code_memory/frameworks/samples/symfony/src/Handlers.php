<?php

namespace App;

use Symfony\Component\Messenger\Attribute\AsMessageHandler;

#[AsMessageHandler]
class CleanUp
{
    public function __invoke(Report $report) {}
}

class MailSubscriber implements EventSubscriberInterface {}

class OrderVoter extends Voter {}

class OrderType extends AbstractType {}

class Price {}
